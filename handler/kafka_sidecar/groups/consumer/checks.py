"""Checks of a member's request, all of them before anything is changed."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.groups.consumer.members import ConsumerMember, InvalidRegex, MemberHeartbeat, Refusal, Topics
from kafka_sidecar.groups.records import write_value
from kafka_sidecar.groups.records.consumer import MemberMetadataValue
from kafka_sidecar.wire.error_code import ErrorCode

# Limit of a member's record in bytes, about Kafka's default limit of a record batch (message.max.bytes).
MEMBER_BYTES: Final = 1_000_000
KEY_BYTES: Final = 32_767  # longest string in a record key, whose length is an int16
UNKNOWN: Final = MemberMetadataValue(None, None, "", "", (), None, -1, None, None)


def updated_metadata(before: ConsumerMember | None, request: MemberHeartbeat) -> MemberMetadataValue:
    """The member as it describes itself now: what it does not say is as it was."""
    known = UNKNOWN if before is None else before.metadata
    return known._replace(
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=known.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=known.regex if request.regex is None else request.regex or None,
        rebalance_timeout=known.rebalance_timeout if request.rebalance_timeout < 0 else request.rebalance_timeout,
        assignor=known.assignor if request.assignor is None else request.assignor,
        classic=None,
    )


def check_metadata(member_id: str, metadata: MemberMetadataValue, topics: Topics) -> None:
    """Whether a member may be what it says."""
    if any(len(text.encode()) > KEY_BYTES for text in (member_id, metadata.instance_id or "", metadata.regex or "")):
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"A member id, instance id or regular expression is longer than {KEY_BYTES} bytes.",
        )
    if len(write_value(metadata)) > MEMBER_BYTES:
        raise Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"What member {member_id} subscribes to takes more than {MEMBER_BYTES} bytes.",
        )
    try:
        if metadata.regex:
            topics.matching(metadata.regex)
    except InvalidRegex as error:
        text = f"SubscribedTopicRegex `{metadata.regex}` is not a valid regular expression: {error}."
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error


def check_epoch(member: ConsumerMember, request: MemberHeartbeat) -> None:
    if request.epoch == member.epoch:
        return
    # The response with the new member epoch may have been lost, so the member may still send its previous epoch.
    owns_no_more = request.owned is not None and all(
        indexes <= member.current.assigned.get(topic_id, frozenset()) for topic_id, indexes in request.owned.items()
    )
    if request.epoch > member.epoch or request.epoch != member.current.previous_epoch or not owns_no_more:
        relation = "greater" if request.epoch > member.epoch else "smaller"
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {relation} member epoch ({request.epoch}) than the one known by the "
            f"group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


def epoch_error(member: ConsumerMember, epoch: int) -> ErrorCode:
    """Of a commit or a fetch of offsets."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
