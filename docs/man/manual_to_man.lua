--[[
manual_to_man - convert a Markdown document to a manual page

A Lua filter for pandoc. Metadata:
  synopsis  present if the first block of code is the synopsis of a program
  about     the description in NAME
  program   the name under which gsort is installed

Level-2 headings become sections, tables become definition lists, and code becomes bold. Links without
a scheme become plain text.
]]
local about, program

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

-- Return the definition of a row: its last cell or, with four or more columns, a list of
-- "heading: cell".
local function definition_of(row, headings)
  if #headings <= 3 then
    return { pandoc.Plain(cell_of(row, #headings)) }
  end
  local items = {}
  for i = 2, #headings do
    local cell = cell_of(row, i)
    if #cell > 0 then
      items[#items + 1] = { pandoc.Plain(headings[i] .. { pandoc.Str(':'), pandoc.Space() } .. cell) }
    end
  end
  return { pandoc.BulletList(items) }
end

-- Convert a table, which is too wide for a terminal, to a definition list. The first cell of a row
-- is the term, followed by the second of three cells in parentheses. If a term is longer than a
-- line, the table becomes a bullet list.
local function as_list(source)
  local headings, terms, items, longest = {}, {}, {}, 0
  for i = 1, #source.colspecs do
    headings[i] = cell_of(source.head.rows[1], i)
  end
  for _, body in ipairs(source.bodies) do
    for _, row in ipairs(body.body) do
      local term, definition = cell_of(row, 1), definition_of(row, headings)
      if #headings == 3 and #cell_of(row, 2) > 0 then
        term = term .. { pandoc.Str(' (') } .. cell_of(row, 2) .. { pandoc.Str(')') }
      end
      longest = math.max(longest, #pandoc.utils.stringify(term))
      terms[#terms + 1] = { term, { definition } }
      items[#items + 1] = { pandoc.Plain(term .. { pandoc.Str(':') }), table.unpack(definition) }
    end
  end
  return longest > 110 and pandoc.BulletList(items) or pandoc.DefinitionList(terms)
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
  Table = as_list,
  Header = function(header)
    header.level = math.max(header.level - 1, 1)
    header.content = header.level == 1
      and pandoc.Inlines(pandoc.Str(pandoc.utils.stringify(header):upper())) or header.content
    return header
  end,
}

function Pandoc(document)
  local meta = document.meta
  about = pandoc.utils.stringify(meta.about)
  program = pandoc.utils.stringify(meta.program)
  local title = pandoc.utils.stringify(meta.title)
  local blocks, page = document.blocks, {}
  if blocks[1].t == 'Header' and blocks[1].level == 1 then
    table.remove(blocks, 1)
  end
  page[1] = heading('NAME')
  page[2] = pandoc.Para { pandoc.Str(title .. ' - ' .. about) }
  if meta.synopsis then
    page[3] = heading('SYNOPSIS')
    page[4] = unfilled(table.remove(blocks, 1).text)
  end
  page[#page + 1] = heading('DESCRIPTION')
  local body = pandoc.Pandoc(blocks):walk(filter)
  for _, block in ipairs(body.blocks) do
    page[#page + 1] = block
  end
  meta.title = title:upper()
  return pandoc.Pandoc(page, meta)
end
