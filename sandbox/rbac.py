"""ServiceAccounts with rights of their own, and their tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import DEFAULT_SECONDS, ApiClient, Object


@dataclass(frozen=True)
class Rule:
    """One rule of a Role."""

    resources: Sequence[str]
    verbs: Sequence[str]
    api_group: str = ""
    names: Sequence[str] = ()

    def body(self) -> Object:
        """Return the rule as the API spells it."""
        rule: Object = {
            "apiGroups": [self.api_group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        return rule | ({"resourceNames": list(self.names)} if self.names else {})


async def service_account_with_role(
    api: ApiClient, namespace: str, name: str, rules: Sequence[Rule], *, within: float = DEFAULT_SECONDS
) -> str:
    """Create a ServiceAccount and a Role of ``rules`` bound to it; return a token of its (TokenRequest).

    Returns when the server honours the last rule. The token is valid for an hour.
    """
    core = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    meta = {"metadata": {"name": name}}
    (await api.request("POST", core, meta)).ok()
    (await api.request("POST", f"{rbac}/roles", {**meta, "rules": [rule.body() for rule in rules]})).ok()
    binding = {
        **meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    (await api.request("POST", f"{rbac}/rolebindings", binding)).ok()
    answer = (await api.request("POST", f"{core}/{name}/token", {"spec": {"expirationSeconds": 3600}})).ok()
    token: str = answer["status"]["token"]
    if rules:
        await _until_allowed(api, namespace, rules[-1], token=token, within=within)
    return token


async def _until_allowed(api: ApiClient, namespace: str, rule: Rule, *, token: str, within: float) -> None:
    # the authorizer follows bindings by an informer and tells nobody when it has seen one: it must be asked
    attributes: Object = {
        "namespace": namespace,
        "verb": rule.verbs[0],
        "group": rule.api_group,
        "resource": rule.resources[0].partition("/")[0],
        "subresource": rule.resources[0].partition("/")[2],
        "name": rule.names[0] if rule.names else "",
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = {"spec": {"resourceAttributes": attributes}}
    async with asyncio.timeout(within):
        while True:
            answer = await api.request("POST", path, review, token=token)
            if answer.ok()["status"]["allowed"]:
                return
            await asyncio.sleep(0.02)
