"""What a person types for what only a person may do: each platform's own commands, quoted, with their way back.

Names that we do not know stand as shell variables for the person to set. The commands keep to the forms of gcloud,
kubectl, az, aws, docker and hf as their references have them in 2026; none was run by us, and each runbook says so.
Quota ids: Cloud Run's quotas for GPUs, 2026.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.service.container_args import served_model
from agent.core.service.serving import ServingConfig

YOURS = "Set the variables in capitals first; nothing of this was run by us."
GPU_QUOTAS = {
    "nvidia-l4": "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion",
    "nvidia-rtx-pro-6000": "NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion",
}
"""Ids of Cloud Run's GPU quotas, for the doctor too; deploy.sh, which runs before the agent, is held equal."""
_TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, kw_only=True)
class Commands:
    """What a person may run in this order, how it is undone, and what to know before."""

    do: tuple[str, ...]
    undo: str
    note: str = ""


Steps = Callable[[str, ServingConfig], Commands]


def commands_for(
    fix: str, service: str, platform: str | None, config: ServingConfig | None, *, class_: str = "", at: str = ""
) -> Commands | None:
    """Return the commands of a fix on a platform, or None where there are none to give.

    Args:
        fix: The first word of a fix action.
        service: The service; any text, quoted here.
        platform: Where it runs.
        config: What it runs, where somebody could describe it.
        class_: The failure class, where it asks for other commands than the fix alone.
        at: Which object of a cluster it is, where somebody could describe it; see ``Live.cluster_object``.
    """
    make = _OF_CLASS.get((platform or "", fix, class_)) or _STEPS.get((platform or "", fix))
    name = named(service, at) if platform == "kubernetes" else shlex.quote(service)
    return make(name, config or ServingConfig()) if make is not None else None


def named(service: str, at: str) -> str:
    """Return how kubectl takes the object of a service."""
    return at or f'deployment/{shlex.quote(service)} --namespace "$NAMESPACE"'


def _run(name: str, words: str) -> str:
    return f'gcloud run services update {name} --region "$REGION" {words}'


def _run_quota(name: str, config: ServingConfig) -> Commands:
    quota = GPU_QUOTAS.get(config.accelerator or "", '"$QUOTA_ID"')
    most = config.max_instances if config.max_instances is not None else '"$MAX_INSTANCES"'
    do = [f'gcloud beta quotas info describe {quota} --service run.googleapis.com --project "$PROJECT"']
    if config.max_instances != 1:
        do.append(_run(name, "--max-instances 1"))
    do.append(
        f"gcloud beta quotas preferences create --service run.googleapis.com --quota-id {quota}"
        ' --preferred-value "$WANTED" --dimensions region="$REGION" --email "$EMAIL" --project "$PROJECT"'
    )
    note = "Checked is instances at most times GPUs of one; a service with zonal redundancy has another quota."
    return Commands(do=tuple(do), undo=_run(name, f"--max-instances {most}"), note=note)


def _run_token(name: str, config: ServingConfig) -> Commands:
    held = next((e for e in config.env if e.secret and "TOKEN" in e.name), None)
    variable, secret = (held.name, shlex.quote(held.secret or "")) if held is not None else (_TOKEN, '"$SECRET"')
    give = f"--update-secrets {shlex.quote(variable)}={secret}:"
    return Commands(
        do=(
            f'gcloud secrets versions add {secret} --data-file "$TOKEN_FILE" --project "$PROJECT"',
            _run(name, f"{give}latest"),
        ),
        undo=_run(name, f'{give}"$FORMER_VERSION"'),
    )


def _run_access(name: str, config: ServingConfig) -> Commands:
    buckets = [shlex.quote(f"gs://{v.bucket}") for v in config.volumes if v.bucket] or ['"gs://$BUCKET"']
    account = (
        f'RUNTIME_ACCOUNT="$(gcloud run services describe {name} --region "$REGION"'
        " --format 'value(spec.template.spec.serviceAccountName)')\""
    )
    return Commands(
        do=(account, *(_grant("add", b) for b in buckets)), undo=" && ".join(_grant("remove", b) for b in buckets)
    )


def _grant(verb: str, bucket: str) -> str:
    member = '--member "serviceAccount:$RUNTIME_ACCOUNT" --role roles/storage.objectViewer'
    return f"gcloud storage buckets {verb}-iam-policy-binding {bucket} {member}"


def _run_image(name: str, config: ServingConfig) -> Commands:
    former = shlex.quote(config.image) if config.image else '"$FORMER_IMAGE"'
    return Commands(do=(_run(name, '--image "$IMAGE"'),), undo=_run(name, f"--image {former}"))


def _run_card(name: str, config: ServingConfig) -> Commands:
    former = f"--gpu-type {shlex.quote(config.accelerator)}" if config.accelerator else '--gpu-type "$FORMER_GPU_TYPE"'
    former += f" --cpu {config.cpu:g}" if config.cpu else ""
    former += f" --memory {config.memory_mib}Mi" if config.memory_mib else ""
    return Commands(do=(_run(name, '--gpu-type "$GPU_TYPE" --cpu "$CPU" --memory "$MEMORY"'),), undo=_run(name, former))


def _run_back(name: str, config: ServingConfig) -> Commands:  # noqa: ARG001 - one form for all
    shift = f'gcloud run services update-traffic {name} --region "$REGION"'
    return Commands(
        do=(
            f'gcloud run revisions list --service {name} --region "$REGION"',
            f'{shift} --to-revisions "$REVISION=100"',
        ),
        undo=f"{shift} --to-latest",
        note="A pinned revision keeps the traffic until this is undone.",
    )


def _run_weights(name: str, config: ServingConfig) -> Commands:  # noqa: ARG001 - the weights have no service's name
    place = _bucket_path(config)
    if place is None:
        return _weights("gs://$BUCKET/$FOLDER", quote=False)
    return _weights(place, quote=True)


def _weights(place: str, *, quote: bool) -> Commands:
    def word(text: str) -> str:
        return shlex.quote(text) if quote else f'"{text}"'

    return Commands(
        do=(
            f"gcloud storage cp --recursive {word(f'{place}/*')} {word(f'{place}.before/')}",
            'hf download "$MODEL" --local-dir ./checkpoint',
            f"gcloud storage cp --recursive './checkpoint/*' {word(f'{place}/')}",
        ),
        undo=f"gcloud storage cp --recursive {word(f'{place}.before/*')} {word(f'{place}/')}",
        note="Start the service again afterwards.",
    )


def _bucket_path(config: ServingConfig) -> str | None:
    """Where the served folder lies in its bucket, or None where no mount holds it."""
    served = served_model(config.command, config.args) or ""
    for volume in config.volumes:
        folder = served.removeprefix(volume.mount_path.rstrip("/") + "/").strip("/")
        if volume.bucket and folder and served.startswith(volume.mount_path.rstrip("/") + "/"):
            return f"gs://{volume.bucket}/{folder}"
    return None


def _fixed(*do: str, undo: str, note: str = "") -> Steps:
    """Commands that hold nothing of the configuration; ``@NAME@`` stands for the quoted service."""

    def make(name: str, config: ServingConfig) -> Commands:  # noqa: ARG001 - see above
        return Commands(
            do=tuple(line.replace("@NAME@", name) for line in do), undo=undo.replace("@NAME@", name), note=note
        )

    return make


_K8S_POD = 'kubectl patch @NAME@ --type strategic --patch \'{"spec":{"template":{"spec":@POD@}}}\''
_SHM = (
    '{"volumes":[{"name":"dshm","emptyDir":{"medium":"Memory","sizeLimit":"\'"$SIZE"\'"}}],'
    '"containers":[{"name":"\'"$CONTAINER"\'","volumeMounts":[{"name":"dshm","mountPath":"/dev/shm"}]}]}'
)
_PULL = '{"imagePullSecrets":[{"name":"\'"$PULL_SECRET"\'"}]}'
_K8S_IMAGE = _fixed('kubectl set image @NAME@ "$CONTAINER=$IMAGE"', undo="kubectl rollout undo @NAME@")
_K8S_ACCESS = _fixed(
    "kubectl get @NAME@ --output jsonpath='{.spec.template.spec.serviceAccountName}'",
    _grant("add", '"gs://$BUCKET"'),
    undo=_grant("remove", '"gs://$BUCKET"'),
    note="RUNTIME_ACCOUNT is the Google account that this Kubernetes account acts as.",
)
_APP = '@NAME@ --resource-group "$RESOURCE_GROUP"'
_APP_IMAGE = _fixed(
    f"az containerapp show --name {_APP} --query 'properties.template.containers[].image' --output tsv",
    f'az containerapp update --name {_APP} --container-name "$CONTAINER" --image "$IMAGE"',
    undo=f'az containerapp update --name {_APP} --container-name "$CONTAINER" --image "$FORMER_IMAGE"',
)
_DOCKER_BACK = "docker rm --force @NAME@; docker rename @NAME@-before @NAME@ && docker start @NAME@"
_DOCKER_NOTE = "OPTIONS and WORDS are those of the old container: docker inspect shows them."


def _docker_anew(options: str) -> Steps:
    return _fixed(
        "docker inspect @NAME@ > before.json",
        'docker pull "$IMAGE"',
        "docker stop @NAME@ && docker rename @NAME@ @NAME@-before",
        f'docker run --detach --name @NAME@ {options}$OPTIONS "$IMAGE" $WORDS',
        undo=_DOCKER_BACK,
        note=_DOCKER_NOTE,
    )


_DOCKER = {
    "fix_image_or_driver": _docker_anew(""),
    "upgrade_version": _docker_anew(""),
    "fix_auth_token": _docker_anew(f"--env {_TOKEN} "),
    "fix_mount_permissions": _fixed(
        'getfacl --recursive --absolute-names "$CHECKPOINT" > acl.before',
        'chmod --recursive a+rX "$CHECKPOINT"',
        "docker restart @NAME@",
        undo="setfacl --restore acl.before",
    ),
    "redownload_weights": _fixed(
        'hf download "$MODEL" --local-dir "$CHECKPOINT.new"',
        "docker stop @NAME@",
        'mv "$CHECKPOINT" "$CHECKPOINT.before" && mv "$CHECKPOINT.new" "$CHECKPOINT"',
        "docker start @NAME@",
        undo='docker stop @NAME@; mv "$CHECKPOINT" "$CHECKPOINT.new" && mv "$CHECKPOINT.before" "$CHECKPOINT"'
        " && docker start @NAME@",
    ),
}

_STEPS: dict[tuple[str, str], Steps] = {
    ("cloud_run", "fix_quota"): _run_quota,
    ("cloud_run", "fix_auth_token"): _run_token,
    ("cloud_run", "fix_mount_permissions"): _run_access,
    ("cloud_run", "fix_image_or_driver"): _run_image,
    ("cloud_run", "upgrade_version"): _run_image,
    ("cloud_run", "change_accelerator"): _run_card,
    ("cloud_run", "none_code_bug"): _run_back,
    ("cloud_run", "redownload_weights"): _run_weights,
    ("kubernetes", "fix_image_or_driver"): _K8S_IMAGE,
    ("kubernetes", "upgrade_version"): _K8S_IMAGE,
    ("kubernetes", "none_code_bug"): _fixed(
        "kubectl rollout history @NAME@",
        "kubectl rollout undo @NAME@",
        undo="kubectl rollout undo @NAME@",
    ),
    ("kubernetes", "fix_mount_permissions"): _K8S_ACCESS,
    ("kubernetes", "fix_quota"): _fixed(
        'kubectl describe resourcequota --namespace "$NAMESPACE"',
        "kubectl scale @NAME@ --replicas 1",
        undo='kubectl scale @NAME@ --replicas "$FORMER_REPLICAS"',
    ),
    ("kubernetes", "fix_auth_token"): _fixed(
        'kubectl get secret "$SECRET" --namespace "$NAMESPACE" --output yaml > secret.before',
        'kubectl create secret generic "$SECRET" --namespace "$NAMESPACE" --from-file "$KEY=$TOKEN_FILE"'
        " --dry-run=client --output yaml"
        " | kubectl apply --filename -",
        "kubectl rollout restart @NAME@",
        undo="kubectl apply --filename secret.before && kubectl rollout restart @NAME@",
        note="secret.before holds the former token: remove it afterwards.",
    ),
    ("kubernetes", "set_strategy"): _fixed(
        "kubectl get @NAME@ --output jsonpath='{.spec.strategy}' > strategy.before",
        'kubectl patch @NAME@ --patch \'{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}\'',
        "kubectl rollout status @NAME@",
        undo='kubectl patch @NAME@ --patch "$(printf \'{"spec":{"strategy":%s}}\' "$(cat strategy.before)")"',
        note="Each update then has a gap: the old replica ends before the new one is ready.",
    ),
    ("kubernetes", "increase_disk"): _fixed(
        'kubectl set resources @NAME@ --containers "$CONTAINER"'
        ' --requests "ephemeral-storage=$SIZE" --limits "ephemeral-storage=$SIZE"',
        undo="kubectl rollout undo @NAME@",
        note="Where the node's own disk is full, it needs a larger one, or caches and weights a volume of their own.",
    ),
    ("kubernetes", "set_shm_size"): _fixed(
        "kubectl get @NAME@ --output jsonpath='{.spec.template.spec.volumes}'",
        _K8S_POD.replace("@POD@", _SHM),
        undo="kubectl rollout undo @NAME@",
        note="A volume that is mounted at /dev/shm already gets the larger size instead; both count as memory.",
    ),
    ("kubernetes", "redownload_weights"): lambda _n, c: _run_weights("", c),
    ("container_apps", "fix_image_or_driver"): _APP_IMAGE,
    ("container_apps", "upgrade_version"): _APP_IMAGE,
    ("container_apps", "fix_quota"): _fixed(
        'az containerapp env list-usages --name "$ENVIRONMENT" --resource-group "$RESOURCE_GROUP" --output table',
        f"az containerapp update --name {_APP} --max-replicas 1",
        undo=f'az containerapp update --name {_APP} --max-replicas "$FORMER_MAX_REPLICAS"',
    ),
    ("container_apps", "fix_auth_token"): _fixed(
        f'az containerapp secret set --name {_APP} --secrets "$SECRET=$(cat "$TOKEN_FILE")"',
        f'az containerapp revision restart --name {_APP} --revision "$REVISION"',
        undo=f'az containerapp secret set --name {_APP} --secrets "$SECRET=$(cat "$FORMER_TOKEN_FILE")"',
    ),
    ("container_apps", "fix_mount_permissions"): _fixed(
        f"az containerapp show --name {_APP} --query 'identity'",
        'az role assignment create --assignee "$IDENTITY" --role "Storage Blob Data Reader" --scope "$STORAGE_ID"',
        undo='az role assignment delete --assignee "$IDENTITY" --role "Storage Blob Data Reader" --scope "$STORAGE_ID"',
    ),
    ("tpu_vm", "fix_quota"): _fixed(
        'gcloud beta quotas info list --service tpu.googleapis.com --project "$PROJECT"',
        'gcloud alpha compute tpus queued-resources list --zone "$ZONE" --project "$PROJECT"',
        undo="nothing was changed",
        note="A suspended request never resumes: delete it and ask again.",
    ),
    ("ec2", "fix_quota"): _fixed(
        "aws service-quotas list-service-quotas --service-code ec2"
        " --query 'Quotas[?contains(QuotaName, `On-Demand`)].[QuotaCode,QuotaName,Value]' --output table",
        'aws service-quotas request-service-quota-increase --service-code ec2 --quota-code "$QUOTA_CODE"'
        ' --desired-value "$VCPUS"',
        undo="nothing to undo: a quota that is not used changes nothing",
    ),
    **{(platform, fix): make for platform in ("tpu_vm", "ec2") for fix, make in _DOCKER.items()},
}

_OF_CLASS: dict[tuple[str, str, str], Steps] = {
    ("kubernetes", "fix_auth_token", "image_pull_failed"): _fixed(
        'kubectl create secret docker-registry "$PULL_SECRET" --namespace "$NAMESPACE"'
        ' --from-file ".dockerconfigjson=$DOCKER_CONFIG"',
        _K8S_POD.replace("@POD@", _PULL),
        undo='kubectl rollout undo @NAME@ && kubectl delete secret "$PULL_SECRET" --namespace "$NAMESPACE"',
        note="DOCKER_CONFIG is a config.json that a login to this registry wrote.",
    ),
}
"""Where a fix means something else for one class: here the token is the registry's, not the model hub's."""
