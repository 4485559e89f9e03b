"""Beyond one machine: shards in Ray actors, with the answers of one exhaustive scan.

======================  ==========================================================================
file                    its job
======================  ==========================================================================
``database``            the public :class:`ShardedDatabase`
``placement``           which shard an id belongs to
``manifest``            the one JSON file that says which generation of each shard is the database
``places``              folders and URIs; copies of shards on a node's own disk
``shard``               a :class:`hiernorm.Database` at the generation that the manifest names
``server``              what an actor does: searches, changes, checks of one shard
``crew``                the actors: calls that come back, are tried again, or are missing
``reading``             one generation of all shards: searches, look-ups, checks
``queries``             batches and waves of queries
``answers``             merging, and certificates that name what is missing
``changes``             a change of many shards: all of it, or nothing
``parts``               entries on their way to a shard, in files
``creation``            folders of a new database
``units``, ``splitting``  files and datasets, cut into parts of shards
``building``            bulk building with Ray Data, continued where it stopped
``session``             the Ray that all of this runs on
======================  ==========================================================================

Needs ``pip install 'hiernorm[ray]'``; see ``docs/scale.md``.
"""

from hiernorm.distributed.answers import Missing, ShardedCertificate
from hiernorm.distributed.builder import build
from hiernorm.distributed.database import ShardedDatabase
from hiernorm.distributed.errors import ShardsMissingError
from hiernorm.distributed.placement import shard_of

__all__ = [
    "Missing",
    "ShardedCertificate",
    "ShardedDatabase",
    "ShardsMissingError",
    "build",
    "shard_of",
]
