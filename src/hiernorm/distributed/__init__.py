"""Sharded databases on Ray: many machines, with the answers of one exhaustive scan.

==================  ==============================================================================
module              its job
==================  ==============================================================================
``database``        the public :class:`ShardedDatabase`
``placement``       which shard an id belongs to
``manifest``        the JSON file that names the generation of each shard
``location``        folders and URIs; copies of shards on a node's own disk
``shard``           a :class:`hiernorm.Database` at the generation that the manifest names
``server``          what an actor runs: searches, changes and checks of one shard
``actor_pool``      the actors: calls with retries and a deadline
``fan_out``         queries to all shards, in batches and waves
``answers``         merged answers, and certificates that name missing shards
``reader``          one generation of all shards: searches, look-ups, checks
``writer``          changes of many shards: a two-phase commit
``staging``         entries for each shard in part files
``creation``        the folders of a new database
``input_splits``    ranges of rows of source files, one per task
``partition``       tasks that write the rows of an input split to part files
``build_journal``   what a build has done, so that it can be continued
``builder``         bulk build with Ray Data
``session``         the connection to Ray
==================  ==============================================================================

Needs ``pip install 'hiernorm[ray]'``; see ``docs/research/scale.md``.
"""

from hiernorm._deprecation import rename_module, renamed_names
from hiernorm.distributed.answers import MissingShards, ShardedCertificate
from hiernorm.distributed.builder import build
from hiernorm.distributed.database import ShardedDatabase
from hiernorm.distributed.errors import ShardsMissingError
from hiernorm.distributed.placement import shard_of

__all__ = [
    "MissingShards",
    "ShardedCertificate",
    "ShardedDatabase",
    "ShardsMissingError",
    "build",
    "shard_of",
]

rename_module("hiernorm.distributed.building", "hiernorm.distributed.builder")
__getattr__ = renamed_names(__name__, {"Missing": "hiernorm.distributed.answers:MissingShards"})
