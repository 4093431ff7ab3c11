"""What outlives one request. Nothing here knows the APIs.

answer_share          counts the bytes of Fetch answers that clients have not read yet
fetch_session_cache   incremental fetch sessions (KIP-227)
member_forms          the forms of topic names that members of groups use
promise               an answer that comes later
redirects             which clients were sent to which leader
refused_batches       refuses what a producer sent behind a batch that was refused
resolved_partitions   partitions by the bytes of requests
waits_elsewhere       requests that wait for members of a group at another sidecar
"""
