"""The Kafka APIs, one file each, named by key. `APIS` is the one list; ApiVersions is made from it."""

from __future__ import annotations

from typing import Final

from handler.apis import (
    a00_produce,
    a01_fetch,
    a02_list_offsets,
    a03_metadata,
    a08_offset_commit,
    a09_offset_fetch,
    a10_find_coordinator,
    a11_join_group,
    a12_heartbeat,
    a13_leave_group,
    a14_sync_group,
    a15_describe_groups,
    a16_list_groups,
    a18_api_versions,
    a19_create_topics,
    a20_delete_topics,
    a21_delete_records,
    a22_init_producer_id,
    a23_offset_for_leader_epoch,
    a24_add_partitions_to_txn,
    a25_add_offsets_to_txn,
    a26_end_txn,
    a28_txn_offset_commit,
    a32_describe_configs,
    a33_alter_configs,
    a34_alter_replica_log_dirs,
    a35_describe_log_dirs,
    a37_create_partitions,
    a42_delete_groups,
    a43_elect_leaders,
    a44_incremental_alter_configs,
    a45_alter_partition_reassignments,
    a46_list_partition_reassignments,
    a47_offset_delete,
    a55_describe_quorum,
    a57_update_features,
    a60_describe_cluster,
    a61_describe_producers,
    a68_consumer_group_heartbeat,
    a69_consumer_group_describe,
    a74_list_config_resources,
    a75_describe_topic_partitions,
)
from handler.apis.api import AnyApi

APIS: Final[tuple[AnyApi, ...]] = (
    a00_produce.API,
    a01_fetch.API,
    a02_list_offsets.API,
    a03_metadata.API,
    a08_offset_commit.API,
    a09_offset_fetch.API,
    a10_find_coordinator.API,
    a11_join_group.API,
    a12_heartbeat.API,
    a13_leave_group.API,
    a14_sync_group.API,
    a15_describe_groups.API,
    a16_list_groups.API,
    a18_api_versions.API,
    a19_create_topics.API,
    a20_delete_topics.API,
    a21_delete_records.API,
    a22_init_producer_id.API,
    a23_offset_for_leader_epoch.API,
    a24_add_partitions_to_txn.API,
    a25_add_offsets_to_txn.API,
    a26_end_txn.API,
    a28_txn_offset_commit.API,
    a32_describe_configs.API,
    a33_alter_configs.API,
    a34_alter_replica_log_dirs.API,
    a35_describe_log_dirs.API,
    a37_create_partitions.API,
    a42_delete_groups.API,
    a43_elect_leaders.API,
    a44_incremental_alter_configs.API,
    a45_alter_partition_reassignments.API,
    a46_list_partition_reassignments.API,
    a47_offset_delete.API,
    a55_describe_quorum.API,
    a57_update_features.API,
    a60_describe_cluster.API,
    a61_describe_producers.API,
    a68_consumer_group_heartbeat.API,
    a69_consumer_group_describe.API,
    a74_list_config_resources.API,
    a75_describe_topic_partitions.API,
)

# Requests that sidecars pass on to each other: those about groups.
COORDINATED: Final = frozenset({8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69})

BY_KEY: Final[dict[int, AnyApi]] = {api.key: api for api in APIS}
assert len(BY_KEY) == len(APIS), "two APIs have one key"

a18_api_versions.advertise(APIS)
