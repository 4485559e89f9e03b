"""The database on disk: immutable segments under one manifest that is replaced atomically.

====================  ============================================================================
module                its job
====================  ============================================================================
``database``          the public :class:`hiernorm.Database`
``state``             one generation, opened: its segments and their live entries
``search``            search of all segments of a state
``selection``         filters: from ids to masks that the scan applies
``writer``            changes under the lock; new folders
``transaction``       from one generation to the next, as a whole or not at all
``importer``          vectors of any source, checked and gathered into segments
``sources``           arrays, iterators and files larger than memory
``spill_buffer``      entries for a segment, in memory or in a file
``encoding``          entries to codes, codes to a segment file
``segment``           one mapped segment file, ready to be searched
``tombstones``        which entries of a segment are deleted
``payload``           the payload of a generation: columns, conditions, string keys
``payload_file``      the columns of one segment, written and mapped
``payload_gatherer``  the payload of a new segment, from older ones and new entries
``payload_queue``     the payload of entries on their way into a transaction
``payload_check``     what can be wrong with a payload
``key_collisions``    two string keys with the same id
``manifest``          the JSON file that lists the files of the database
``tensors``           safetensors files: written piece by piece, mapped without a copy
``exporter``          entries to files that other tools read
``integrity``         ``check``: every digest, and every reference between files
``lock``              one writer at a time
``errors``            what can be wrong
====================  ============================================================================

The format is described in ``docs/reference/format.md``.
"""
