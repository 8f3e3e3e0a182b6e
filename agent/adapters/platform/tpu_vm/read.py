"""Reads a TPU node, or its queued resource where it has none, and what is missing before a change can reach it."""

from collections.abc import Iterator
from datetime import datetime

from agent.adapters.platform.host.describe import HIDDEN
from agent.adapters.platform.rehearsal.template import template_of
from agent.adapters.platform.tpu_vm.api import TpuApi, not_there
from agent.adapters.platform.tpu_vm.describe import NodeRef, Seen, progress
from agent.adapters.platform.tpu_vm.node_metadata import read_metadata, read_report


def read_node(api: TpuApi, ref: NodeRef, now: datetime) -> Seen:
    """Return a node with its report, or its queued resource.

    Raises:
        NotDeployed: Neither is there.
    """
    node = api.node(ref.node)
    if node is not None:
        report = read_report(api.report(ref.node)) if node.state.name == "READY" else None
        return Seen(ref=ref, node=node, queued=None, metadata=read_metadata(node.metadata), report=report, now=now)
    queued = api.queued_resource(ref.queued_resource) if ref.queued_resource is not None else None
    if queued is None or not queued.tpu.node_spec:
        raise not_there(ref.service, ref.node)
    metadata = read_metadata(queued.tpu.node_spec[0].node.metadata)
    return Seen(ref=ref, node=None, queued=queued, metadata=metadata, report=None, now=now)


def missing_setup(seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield what is wrong and what to do, for everything that a change of this node needs."""
    node = seen.node
    if node is None:
        yield progress(seen).says, "delete what holds quota, or wait: docs/tpu.md, 'What you see'"
        return
    if node.state.name != "READY":
        yield progress(seen).says, "wait for it, or look at it in the Cloud console"
        return
    if not seen.metadata.template:
        yield progress(seen).says, "give the node the startup script and vllm-server: docs/tpu.md, 'Set up a node'"
        return
    if node.metadata.get("enable-guest-attributes", "").upper() != "TRUE":
        yield "guest attributes are off, so the node cannot report", "set the metadata enable-guest-attributes=TRUE"
    elif seen.report is None or progress(seen).ready is None:
        yield progress(seen).says, "look at the unit sre-agent-node on the node: journalctl -u sre-agent-node"
    if len(node.network_endpoints) > 1:
        yield f"the node has {len(node.network_endpoints)} workers, and a change covers one", "change it yourself"
    if seen.ref.queued_resource is None:
        yield "services.toml names no queued_resource", "name it, so that the agent can say why a node is not there"
    for one in template_of(seen.template).config.env:
        if one.value and any(part in one.name.upper() for part in HIDDEN):
            says = f"the variable {one.name} stands in the metadata, where everybody who sees the node reads it"
            yield says, "keep it in Secret Manager: {'name': '" + one.name + "', 'secret': 'NAME'}"
