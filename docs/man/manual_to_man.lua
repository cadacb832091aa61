--[[
manual - makes of our Markdown documents what a page of the manual looks like

A filter of pandoc. Metadata of the page:
  page     the program whose part of cli.md this is, or nothing: the whole document
  about    its one line
  program  what gsort is called here

Headings become those of manuals, tables of two columns lists of terms, code bold, and links into this
folder their text. The first block of code is the synopsis of a program.
]]
local page, about, program

local function renamed(text)
  return (text:gsub('gsort', program))
end

local function escaped(line)
  line = line:gsub('\\', '\\e'):gsub('-', '\\-'):gsub("'", '\\(aq'):gsub('`', '\\(ga')
  return (line:gsub('^[.]', '\\&.'))
end

local function unfilled(text)
  local lines = {}
  for line in (renamed(text) .. '\n'):gmatch('(.-)\n') do
    lines[#lines + 1] = escaped(line)
  end
  return pandoc.RawBlock('man', '.RS 4\n.nf\n' .. table.concat(lines, '\n') .. '\n.fi\n.RE')
end

local function cell_of(row, i)
  return pandoc.utils.blocks_to_inlines(row.cells[i].contents)
end

-- Of two columns: a term, and what it is; if terms are longer than a line, item for item.
local function as_list(source)
  local terms, items, longest = {}, {}, 0
  for _, body in ipairs(source.bodies) do
    for _, row in ipairs(body.body) do
      local term, what = cell_of(row, 1), cell_of(row, 2)
      longest = math.max(longest, #pandoc.utils.stringify(term))
      terms[#terms + 1] = { term, { { pandoc.Plain(what) } } }
      items[#items + 1] = { pandoc.Plain(term .. { pandoc.Str(':'), pandoc.Space() } .. what) }
    end
  end
  return longest > 70 and pandoc.BulletList(items) or pandoc.DefinitionList(terms)
end

-- The blocks of a program: from its heading to the next program's, or all.
local function part_of(blocks)
  local part, within = {}, page == nil or page == 'gsort'
  for _, block in ipairs(blocks) do
    local name = block.t == 'Header' and pandoc.utils.stringify(block)
    if page and name and block.level == 2 and name:match('^gsort%-%l+$') then
      within = name == page
    elseif within and not (name and block.level == 1) then
      part[#part + 1] = block
    end
  end
  return part
end

local function heading(text)
  return pandoc.Header(1, pandoc.Str(text))
end

local filter = {
  Str = function(str) return pandoc.Str(renamed(str.text)) end,
  Code = function(code) return pandoc.Strong(pandoc.Str(renamed(code.text))) end,
  CodeBlock = function(block) return unfilled(block.text) end,
  Link = function(link)
    return link.target:match('^%a+:') and link or link.content
  end,
  Table = function(source) return #source.colspecs == 2 and as_list(source) or nil end,
  Header = function(header)
    header.level = math.max(header.level - ((page == nil or page == 'gsort') and 1 or 2), 1)
    header.content = header.level == 1
      and pandoc.Inlines(pandoc.Str(pandoc.utils.stringify(header):upper())) or header.content
    return header
  end,
}

function Pandoc(document)
  local meta = document.meta
  page = meta.page and pandoc.utils.stringify(meta.page)
  about = pandoc.utils.stringify(meta.about)
  program = pandoc.utils.stringify(meta.program)
  local title = pandoc.utils.stringify(meta.title)
  local part, whole = part_of(document.blocks), {}
  whole[1] = heading('NAME')
  whole[2] = pandoc.Para { pandoc.Str(title .. ' - ' .. about) }
  if page then
    whole[3] = heading('SYNOPSIS')
    whole[4] = unfilled(table.remove(part, 1).text)
  end
  whole[#whole + 1] = heading('DESCRIPTION')
  local body = pandoc.Pandoc(part):walk(filter)
  for _, block in ipairs(body.blocks) do
    whole[#whole + 1] = block
  end
  meta.title = title:upper()
  return pandoc.Pandoc(whole, meta)
end
