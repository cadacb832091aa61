/*
 * file_attributes - what belongs to a file besides its bytes: owner, permissions, access list,
 * labels
 *
 * A file that takes another one's place must be open to nobody to whom the other was not. The group
 * bits of a file with an access list are the list's mask, not what the group may do: they are right
 * beside that list only. So the list is kept, or else nobody but the owner gets in; and a list that
 * the new file has inherited from its directory goes away where the old one has none.
 */
#pragma once

#include "io/file/file.h"

/* What was lost on the way. */
struct lost_attributes {
	bool acl;    /* only the owner has access now */
	bool xattrs; /* extended attributes of the user's */
};

/*
 * Open the file `name` in `directory`, no link, so that its attributes can be copied; the right to
 * read it is not needed. Returns 0 or a negative errno.
 */
int attributes_open(const struct syscalls *calls, int directory, const char *name,
		    struct file *ret_old);

/*
 * Give `file`, which nobody but its owner may use yet, the owner, group, permissions, access list
 * and extended attributes of `old`, as far as this process may. Where the group cannot be kept its
 * members get no more than everybody; where owner or group cannot, the bits that lend their
 * identity are dropped. Labels of the system that may not be set, and what is about the bytes of
 * the old file, stay behind. Returns 0 or a negative errno, without a message.
 */
int attributes_copy(const struct file *old, const struct file *file,
		    struct lost_attributes *ret_lost);
