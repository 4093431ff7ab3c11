"""What the three APIs about ACLs have in common: there is no authorizer, and Kafka has sentences for that (AclApis).

MirrorMaker 2 looks for them.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.wire.error_code import ErrorCode

CODE: Final = ErrorCode.SECURITY_DISABLED
MESSAGE: Final = "No Authorizer is configured."
DESCRIBE_MESSAGE: Final = "No Authorizer is configured on the broker"
