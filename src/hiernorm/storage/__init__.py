"""Descriptors on disk: immutable segments under one manifest that is replaced atomically.

======================  ==========================================================================
file                    its job
======================  ==========================================================================
``database``            the public :class:`hiernorm.Database`
``state``               what one generation looks like: its segments and their live entries
``transaction``         from one generation to the next: all of it, or nothing
``segment``             one mapped file of entries, ready to be searched
``encoding``            entries to codes, codes to a segment file
``manifest``            the one JSON file that says which files are the database
``tensors``             safetensors files: written in parts, mapped without a copy
``tombstones``          which entries of a segment are still alive
``selection``           filters: from ids to masks that the scan applies
``insertion``           adding and replacing: checked, gathered into segments
``writing``             the writer: changes under the lock
``sources``, ``spool``  vectors from arrays, iterators and files larger than memory
``exporting``           entries out to files that other tools read
``checking``            ``verify``: every digest and every promise between files
``files``, ``lock``     write, fsync, rename; one writer at a time
======================  ==========================================================================

The format is described in ``docs/format.md``.
"""
