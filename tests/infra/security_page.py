"""The tables of docs/security.md, from what Terraform grants."""


def tables(cloud):
    """Return the tables as Markdown: what each function may do, and who reads which secret."""
    table = cloud.locals
    rows = []
    for name in sorted(table["functions"]):
        databases = [f"{d}: {r.rpartition('.')[2]}" for d, r in table["databases_of"].get(name, {}).items()]
        services = [r.replace("roles/", "") for r in table["services_of"].get(name, [])]
        projects = [r.replace("roles/", "") for r in table["projects_of"].get(name, [])]
        secrets = [key for key, readers in table["secrets"].items() if name in readers]
        signs = ["receipts"] if name in table["deciders"] else []
        rows.append(
            f"| `{name}` | {_said(databases)} | {_said(table['publishes'].get(name, []))} | {_said(services)} | "
            f"{_said(projects)} | {_said(secrets)} | {_said(signs)} |"
        )
    head = (
        "| function | databases | publishes to | on the watched services | in their projects | secrets | signs |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    own = "\n".join(
        f"- `{key}`: {', '.join(f'`{p}`' for p in table[f'{key}_permissions'])}"
        for key in ("updater", "logs", "operations", "lifecycle")
    )
    return f"{head}{chr(10).join(rows)}\n\nOur own roles hold:\n\n{own}\n"


def _said(words):
    return ", ".join(words) or "-"
