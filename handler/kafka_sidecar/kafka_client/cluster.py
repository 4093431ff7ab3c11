"""How a Kafka cluster is reached. Goes to the tasks with their work: a secret is read where it is needed, and never
sent.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.model.sidecar import are_endpoints

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    bootstrap: str
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "PLAIN"
    username: str = ""
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""  # empty for the trust store of the system
    certificate_file: str = ""
    key_file: str = ""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """From a table of a TOML file; ConfigError says what to change."""
        known = {field.name for field in fields(cls)}
        for key, value in settings.items():
            if key in ("password", "secret"):
                raise ConfigError(f"[{name}] {key}: a secret is given by password_file or password_env, never itself")
            if key not in known:
                raise ConfigError(f"[{name}] {key}: there is no such setting; there are {', '.join(sorted(known))}")
            if not isinstance(value, str):
                raise ConfigError(f"[{name}] {key} = {value}: write a string")
        if not settings.get("bootstrap"):
            raise ConfigError(
                f"[{name}] bootstrap: say where the cluster is, as in bootstrap = 'broker:9092', or --{name} "
                "broker:9092"
            )
        found = cls(**settings)
        found._check(name)
        return found

    def _check(self, name: str) -> None:
        if not are_endpoints(self.bootstrap):
            raise ConfigError(f"[{name}] bootstrap = {self.bootstrap}: write HOST:PORT, several separated by commas")
        if self.security_protocol not in PROTOCOLS:
            raise ConfigError(f"[{name}] security_protocol = {self.security_protocol}: one of {', '.join(PROTOCOLS)}")
        if self.security_protocol.startswith("SASL"):
            if self.sasl_mechanism not in MECHANISMS:
                raise ConfigError(f"[{name}] sasl_mechanism = {self.sasl_mechanism}: one of {', '.join(MECHANISMS)}")
            if not self.username or not (self.password_file or self.password_env):
                raise ConfigError(
                    f"[{name}] {self.security_protocol} needs username, and password_file or password_env"
                )

    def options(self) -> dict[str, Any]:
        """For a client of aiokafka, on the machine where it runs."""
        found: dict[str, Any] = {"bootstrap_servers": self.bootstrap, "security_protocol": self.security_protocol}
        if self.security_protocol.endswith("SSL"):
            found["ssl_context"] = self._tls()
        if self.security_protocol.startswith("SASL"):
            found |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self._password(),
            }
        return found

    def spark_options(self) -> dict[str, str]:
        """For Spark's Kafka source and sink. Its executors read the files at the same places."""
        found = {"kafka.bootstrap.servers": self.bootstrap, "kafka.metadata.recovery.strategy": "rebootstrap"}
        if self.security_protocol != "PLAINTEXT":
            found["kafka.security.protocol"] = self.security_protocol
        if self.security_protocol.startswith("SASL"):
            kind = "plain.Plain" if self.sasl_mechanism == "PLAIN" else "scram.Scram"
            login = f'username="{_quoted(self.username)}" password="{_quoted(self._password())}"'
            found["kafka.sasl.mechanism"] = self.sasl_mechanism
            found["kafka.sasl.jaas.config"] = f"org.apache.kafka.common.security.{kind}LoginModule required {login};"
        if self.ca_file:
            found |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": self.ca_file}
        if self.certificate_file:
            found |= {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": self.certificate_file}
        return found

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            raise ConfigError(f"ca_file = {self.ca_file} can't be read: {error.strerror}") from error
        try:
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file or None)
        except OSError as error:
            text = f"certificate_file = {self.certificate_file}, key_file = {self.key_file}"
            raise ConfigError(f"{text} can't be read: {error.strerror}") from error
        return context

    def _password(self) -> str:
        if self.password_file:
            try:
                return Path(self.password_file).read_text().strip()
            except OSError as error:
                raise ConfigError(f"password_file = {self.password_file} can't be read: {error.strerror}") from error
        try:
            return os.environ[self.password_env]
        except KeyError:
            raise ConfigError(f"password_env = {self.password_env}: there is no such environment variable") from None


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
