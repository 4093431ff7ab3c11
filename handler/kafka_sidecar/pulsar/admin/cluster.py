"""The cluster and its namespaces, by Pulsar's admin API."""

from __future__ import annotations

from typing import Any

from kafka_sidecar.pulsar.admin.http import AdminHttp, mapping, texts


class ClusterAdmin:
    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def create_namespace(self, namespace: str) -> None:
        await self._http.call("PUT", f"/admin/v2/namespaces/{namespace}")

    async def keep_for_ever(self, namespace: str) -> None:
        retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        await self._http.call("POST", f"/admin/v2/namespaces/{namespace}/retention", body=retention)

    async def clusters(self) -> list[str]:
        return await self._http.get("/admin/v2/clusters", texts)

    async def broker_settings(self) -> dict[str, str]:
        return await self._http.get("/admin/v2/brokers/configuration/runtime", mapping)

    async def tenants(self) -> list[str]:
        return await self._http.get("/admin/v2/tenants", texts)

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        return await self._http.get(f"/admin/v2/namespaces/{namespace}", mapping)
