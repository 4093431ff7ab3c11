"""What a Kafka without an authorizer and without a login answers to those who ask about ACLs, quotas, users and
tokens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kafka_sidecar.apis import BY_KEY
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kafka_sidecar.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka_sidecar.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kafka_sidecar.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kafka_sidecar.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafka_sidecar.wire.messages.describe_acls import DescribeAclsRequest
from kafka_sidecar.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kafka_sidecar.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kafka_sidecar.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from kafka_sidecar.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafka_sidecar.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafka_sidecar.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kafka_sidecar.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.services import Sidecar, errors

NONE = ErrorCode.NONE
DISABLED = ErrorCode.SECURITY_DISABLED


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = Sidecar()
    yield one
    await one.close()


def versions(key: int) -> range:
    return range(BY_KEY[key].lowest, BY_KEY[key].highest + 1)


async def test_there_is_no_authorizer(sidecar: Sidecar) -> None:
    """MirrorMaker 2 takes this for an answer, logs a line and goes on; kafkajs and AKHQ show that there are no ACLs."""
    described = await sidecar.ask(DescribeAclsRequest(), 3)
    assert (described.error_code, described.resources) == (DISABLED, ())
    assert described.error_message == "No Authorizer is configured on the broker", "MirrorMaker 2 looks for these words"
    created = await sidecar.ask(CreateAclsRequest(creations=[AclCreation(), AclCreation()]), 3)
    assert errors(created.results) == [DISABLED, DISABLED], "one for each"
    deleted = await sidecar.ask(DeleteAclsRequest(filters=[DeleteAclsFilter()]), 3)
    assert errors(deleted.filter_results) == [DISABLED]


async def test_there_are_no_quotas(sidecar: Sidecar) -> None:
    answer = await sidecar.ask(
        DescribeClientQuotasRequest(components=[ComponentData(entity_type="user", match="anna")]), 1
    )
    assert (answer.error_code, answer.entries) == (NONE, ())


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData(entity_type="", match="x")], ErrorCode.INVALID_REQUEST),
        (
            [ComponentData(entity_type="user", match_type=1), ComponentData(entity_type="user", match="x")],
            ErrorCode.INVALID_REQUEST,
        ),
        ([ComponentData(entity_type="colour", match="x")], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData(entity_type="user", match_type=0)], ErrorCode.INVALID_REQUEST),
        ([ComponentData(entity_type="user", match_type=2, match="x")], ErrorCode.INVALID_REQUEST),
        ([ComponentData(entity_type="user", match_type=3)], ErrorCode.INVALID_REQUEST),
        (
            [ComponentData(entity_type="user", match_type=2), ComponentData(entity_type="ip", match_type=2)],
            ErrorCode.INVALID_REQUEST,
        ),
    ],
    ids=["no type", "twice", "unknown type", "exact without a name", "any with a name", "unknown match", "ip and user"],
)
async def test_a_filter_of_quotas_that_makes_no_sense_is_refused(
    sidecar: Sidecar, components: list[ComponentData], code: ErrorCode
) -> None:
    answer = await sidecar.ask(DescribeClientQuotasRequest(components=components), 1)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message


async def test_no_quota_can_be_set_and_any_can_be_removed(sidecar: Sidecar) -> None:
    entries = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name="anna")],
            ops=[OpData(key="producer_byte_rate", value=1e6)],
        ),
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=None)],
            ops=[OpData(key="producer_byte_rate", remove=True)],
        ),
    ]
    answer = await sidecar.ask(AlterClientQuotasRequest(entries=entries), 1)
    assert errors(answer.entries) == [ErrorCode.INVALID_REQUEST, NONE]
    assert answer.entries[0].error_message == "This cluster has no client quotas, so none can be set."
    assert [(one.entity_type, one.entity_name) for one in answer.entries[0].entity] == [("user", "anna")]


@pytest.mark.parametrize(
    ("entity", "why"),
    [
        ([], "Invalid empty client quota entity"),
        ([("colour", "red")], "Unhandled client quota entity type: colour"),
        ([("user", "")], "Empty user not supported"),
        ([("user", "anna"), ("ip", "10.0.0.1")], "Invalid quota entity combination"),
    ],
)
async def test_what_is_no_entity_of_quotas_is_refused_whatever_is_done_to_it(
    sidecar: Sidecar, entity: list[tuple[str, str]], why: str
) -> None:
    given = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    removed = [OpData(key="producer_byte_rate", remove=True)]
    (answer,) = (await sidecar.ask(AlterClientQuotasRequest(entries=[EntryData(entity=given, ops=removed)]), 1)).entries
    assert answer.error_code is ErrorCode.INVALID_REQUEST
    assert why in answer.error_message


async def test_an_entity_of_quotas_that_comes_twice_is_answered_once(sidecar: Sidecar) -> None:
    anna = [EntityData(entity_type="user", entity_name="anna")]
    one = OpData(key="producer_byte_rate", remove=True)
    for entries in (
        [EntryData(entity=anna, ops=[one]), EntryData(entity=anna, ops=[one])],
        [EntryData(entity=anna, ops=[one, one])],
    ):
        (answer,) = (await sidecar.ask(AlterClientQuotasRequest(entries=entries), 1)).entries
        assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity")


async def test_no_user_has_credentials(sidecar: Sidecar) -> None:
    for everybody in (DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsRequest(users=[])):
        answer = await sidecar.ask(everybody, 0)
        assert (answer.error_code, answer.results) == (NONE, [])
    answer = await sidecar.ask(
        DescribeUserScramCredentialsRequest(users=[UserName(name=one) for one in ("a", "b", "b")]), 0
    )
    told = [(one.user, one.error_code) for one in answer.results]
    assert told == [("a", ErrorCode.RESOURCE_NOT_FOUND), ("b", ErrorCode.DUPLICATE_RESOURCE)]


async def test_no_credentials_are_kept(sidecar: Sidecar) -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="a", mechanism=1)],
        upsertions=[ScramCredentialUpsertion(name="b", mechanism=1), ScramCredentialUpsertion(name="b", mechanism=2)],
    )
    answer = await sidecar.ask(request, 0)
    told = [(one.user, one.error_code) for one in answer.results]
    assert told == [("a", ErrorCode.UNSUPPORTED_SASL_MECHANISM), ("b", ErrorCode.UNSUPPORTED_SASL_MECHANISM)]


async def test_a_listener_without_a_login_knows_no_tokens(sidecar: Sidecar) -> None:
    for request in (
        CreateDelegationTokenRequest(),
        RenewDelegationTokenRequest(),
        ExpireDelegationTokenRequest(),
        DescribeDelegationTokenRequest(),
    ):
        for version in versions(request.KEY):
            answer = await sidecar.ask(request, version)
            assert answer.error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    answer = await sidecar.ask(
        CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="anna"), 3
    )
    assert (answer.principal_name, answer.token_requester_principal_name) == ("anna", "ANONYMOUS")


async def test_a_listener_without_a_login_takes_none(sidecar: Sidecar) -> None:
    handshake = await sidecar.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (handshake.error_code, handshake.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    login = await sidecar.ask(SaslAuthenticateRequest(auth_bytes=b"\0anna\0secret"), 2)
    assert login.error_code is ErrorCode.ILLEGAL_SASL_STATE
