"""deploy.sh: clean, harmless when dry, understood by the real gcloud, and refusing before anything is changed."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import hcl2
import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.core.decision.policy import parse_policy
from agent.core.planning.runbook_commands import GPU_QUOTAS
from agent.core.service.services import parse_services
from agent.entrypoints.cli.doctor import cloud
from tests.infra import terraform_text

pytestmark = pytest.mark.deploy

ACTIONS = ("plan", "apply", "smoke", "destroy")


@pytest.fixture(scope="module")
def tree(root, tmp_path_factory):
    """The repository as a fresh clone has it: what deploy.sh writes stays out of the real one."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("agent", "functions", "prompts", "tools", "requirements.txt"):
        (folder / name).symlink_to(root / name)
    shutil.copytree(root / "infra", folder / "infra")
    shutil.copy(root / "deploy.sh", folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    staged = "case $1 in tools/stage_functions.py) exit 0;; esac"  # has tests of its own, and takes its time
    python.write_text(f'#!/bin/sh\n{staged}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


def deploy(tree, *words, **more):
    """Run deploy.sh as somebody without any credentials."""
    kept = {key: value for key, value in os.environ.items() if key in {"PATH", "LANG"}}
    environ = kept | {"HOME": str(tree), "CLOUDSDK_CONFIG": str(tree / "gcloud"), "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"}
    return subprocess.run(
        ["./deploy.sh", *words], cwd=tree, env=environ | more, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def said(tree):
    """What each dry run prints."""
    runs = {action: deploy(tree, action, "--dry-run") for action in ACTIONS if action != "smoke"}
    return runs | {"smoke": deploy(tree, "smoke", "--dry-run", "--record", "first")}


def commands(said, tool):
    """The commands of one tool that the dry runs name, as words."""
    lines = "\n".join(run.stdout + run.stderr for run in said.values()).splitlines()
    found = [
        line[2:].split("   (")[0] for line in lines if line[:2] in {"+ ", "? "} and line[2:].startswith(tool + " ")
    ]
    return [shlex.split(line) for line in dict.fromkeys(found)]


@pytest.mark.journey
def test_shellcheck_finds_nothing(root, missing):
    """The whole script, every level."""
    tool = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if tool is None:
        missing("shellcheck, from requirements-dev.txt")
    done = subprocess.run([tool, "deploy.sh"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.journey
@pytest.mark.parametrize("action", ACTIONS)
def test_a_dry_run_needs_no_credentials_and_changes_nothing(action, said, tree):
    """It ends well, and leaves nothing but the generated variables behind."""
    assert said[action].returncode == 0, said[action].stderr
    made = {path.name for path in (tree / "build").iterdir()}
    assert made <= {"values.tfvars.json", "accounts", "installation.tfvars.json"}


@pytest.mark.journey
def test_a_dry_run_shows_the_whole_plan(said):
    """Checks, staging, state, secrets, every resource, cost; no value of a secret."""
    out = said["apply"].stdout
    wanted = (
        "== tools ==", "== login and project ==", "== watched services ==", "== GPU quota", "== one folder per function ==",
        "storage buckets create", "secrets versions list sre-receipt-key", "google_cloudfunctions2_function this",
        "google_logging_project_sink log_events", "google_firestore_database this", "USD  a month", "--iap",
    )  # fmt: skip
    both = out + said["apply"].stderr
    assert [text for text in wanted if text not in both] == []


@pytest.mark.journey
def test_both_prices_are_shown_before_anything_is_applied(said, root):
    """What a month costs with `decide` warm and cold, and the variable that chooses, which Terraform knows."""
    for action in ("plan", "apply"):
        out = said[action].stdout
        warm, cold = (out.index(f"USD  a month with decide {how}") for how in ("kept warm", "cold"))
        assert max(warm, cold) < (out + " apply -input=false").index(" apply -input=false")
    (switch,) = re.findall(r"with decide cold, (\w+) = false in EXTRA_VARS", said["apply"].stdout)
    assert terraform_text.read_configuration(root / "infra").variables[switch]["type"] == "bool"


def test_the_generated_variables_are_complete(said, tree, root):
    """Everything that variables.tf wants without a default is there."""
    assert said["apply"].returncode == 0
    given = {}
    for name in ("values", "installation"):
        given |= json.loads((tree / "build" / f"{name}.tfvars.json").read_text())
    variables = terraform_text.read_configuration(root / "infra").variables
    assert {name for name, body in variables.items() if "default" not in body} <= set(given) <= set(variables)
    assert given["runtime_accounts"] == {
        "gemma4-26b-qat-l4": "gemma4-26b-qat-l4@example-project.iam.gserviceaccount.com"
    }


def broken_on_purpose(tree, folder, *, check, record=0, answer="--yes"):
    """Run smoke --record over stand-ins of gcloud and curl; the tool ends as told, at its check and at its record."""
    tool = folder / "python"
    calls = f'case "$*" in *--check*) exit {check};; *smoke_record*) exit {record};; esac'
    tool.write_text(f'#!/bin/sh\necho "$*" >>{folder}/asked\n{calls}\nexec {sys.executable} "$@"\n')
    told = {
        "pubsub*": "echo 600", "*canary.received*": "echo now", "*--format=export*": "echo as-it-was",
        "*containerPort*": "echo 8000", "run\\ services\\ update*": f'echo "$*" >>{folder}/changed',
    }  # fmt: skip
    cases = "".join(f"  {at}) {does}; exit 0 ;;\n" for at, does in told.items())
    gcloud = FAKE_GCLOUD.replace("{bucket}", "true").replace("  auth", f"{cases}  auth", 1)
    for name, text in (("gcloud", gcloud), ("terraform", "#!/bin/sh\n"), ("curl", "#!/bin/sh\nprintf 401\n")):
        (folder / name).write_text(text)
    for path in folder.iterdir():
        path.chmod(0o755)
    (tree / "empty-policy.toml").write_text("")
    own = tree / ".venv" / "bin" / "python"
    own.rename(folder / "kept")
    own.symlink_to(tool)
    try:
        return deploy(
            tree, "smoke", "--record", "first", answer, PROJECT="example-project", REGION="us-central1",
            ALERT_EMAILS="a@example.com", SERVICES_FILE="infra/services.example.toml", POLICY_FILE="empty-policy.toml",
            SMOKE_SERVICE="gemma4-26b-qat-l4", PATH=f"{folder}:{os.environ['PATH']}",
        )  # fmt: skip
    finally:
        own.unlink()
        (folder / "kept").rename(own)


def test_what_cannot_be_followed_is_not_broken(tree, tmp_path):
    done = broken_on_purpose(tree, tmp_path, check=3)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Nothing was broken." in done.stderr
    assert not (tmp_path / "changed").exists()


def test_a_service_is_broken_once_followed_and_its_way_back_kept(tree, tmp_path):
    """The check comes first, what it was is kept, and an incident without an end is no success."""
    kept = tree / "build" / "gemma4-26b-qat-l4.before-smoke.yaml"
    try:
        done = broken_on_purpose(tree, tmp_path, check=0, record=1)
        assert done.returncode == 1, done.stdout + done.stderr
        assert kept.read_text() == "as-it-was\n"
        (changed,) = (tmp_path / "changed").read_text().splitlines()
        assert "tcpSocket.port=8000" in changed
        assert "--region=us-east4" in changed
        asked = [line for line in (tmp_path / "asked").read_text().splitlines() if "smoke_record" in line]
        assert ["--check" in line for line in asked] == [True, False]
        assert "--number=123456789012 --account=you@example.com" in asked[1]
        assert f"gcloud run services replace {kept.relative_to(tree)}" in done.stdout
        assert "What exists now: a revision of gemma4-26b-qat-l4 that cannot come up" in done.stderr
        again = broken_on_purpose(tree, tmp_path, check=0)
        assert again.returncode == 2
        assert "is there from an earlier run" in again.stderr
        assert kept.read_text() == "as-it-was\n"
    finally:
        kept.unlink(missing_ok=True)


def test_a_service_is_broken_after_a_question_alone(tree, tmp_path):
    done = broken_on_purpose(tree, tmp_path, check=0, answer="smoke")  # no --yes, and nobody at the terminal
    assert done.returncode == 2, done.stdout + done.stderr
    assert "nothing was broken" in done.stderr
    assert not (tmp_path / "changed").exists()
    assert not (tree / "build" / "gemma4-26b-qat-l4.before-smoke.yaml").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["smoke", "--record"], "--record wants a folder"),
        (["smoke", "--record", "--dry-run"], "--record wants a folder"),
        (["plan", "--record", "x"], "--record belongs to smoke"),
        (["smoke", "--record", "infra"], "infra is there already"),
        (["smoke", "--record", "x"], "SMOKE_SERVICE is not set"),
    ],
)
def test_a_record_that_cannot_be_is_refused_at_once(tree, words, says):
    done = deploy(tree, *words, PROJECT="p-1234567", REGION="us-east4", ALERT_EMAILS="a@example.com")
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_the_real_gcloud_accepts_every_command(said, tree, missing):
    """Its own parser, without a network: no flag is misspelt, no group has moved."""
    if shutil.which("gcloud") is None:
        missing("the gcloud command")
    found = commands(said, "gcloud")
    assert len(found) >= 12
    refused = [verdict for verdict in lint(tree, [shlex.join(words) for words in found]) if not verdict["success"]]
    assert refused == []


def test_the_parser_would_find_a_misspelt_flag(tree, missing):
    """The check above can fail."""
    if shutil.which("gcloud") is None:
        missing("the gcloud command")
    commands = [
        "gcloud pubsub subscriptions describe s --project=p",
        "gcloud pubsub subscriptions describe s --projekt=p",
    ]
    assert [verdict["success"] for verdict in lint(tree, commands)] == [True, False]


def lint(tree, commands):
    """Let gcloud read the commands, all in one process."""
    path = tree / "commands.json"
    path.write_text(json.dumps([{"id": n, "command_string": text} for n, text in enumerate(commands)]))
    done = subprocess.run(
        ["gcloud", "meta", "lint-gcloud-commands", f"--commands-file={path}"],
        env={**os.environ, "CLOUDSDK_CONFIG": str(tree / "gcloud"), "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1"},
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    verdicts = json.loads(done.stdout)
    assert len(verdicts) == len(commands)
    return verdicts


@pytest.mark.journey
def test_terraform_is_called_with_words_it_knows(said):
    """init, plan, apply, output, state rm: always in infra, never asking for input."""
    found = commands(said, "terraform")
    verbs = {words[2] for words in found}
    assert verbs == {"init", "plan", "apply", "output", "state"}
    assert all(words[1] == "-chdir=infra" for words in found)
    assert all("-input=false" in words for words in found if words[2] in {"init", "plan", "apply"})


@pytest.fixture(scope="module")
def applied(said, tree):
    """The dry runs, and that of a removal that takes the incidents along."""
    return [*said.values(), deploy(tree, "destroy", "--dry-run", DELETE_INCIDENTS="yes")]


@pytest.mark.journey
def test_what_is_applied_is_a_plan_that_was_shown(applied):
    """Every apply names a saved plan, written by the plan before it; none is approved unseen."""
    for run in applied:
        assert run.returncode == 0, run.stderr
        written = ""
        for words in commands({"one": run}, "terraform"):
            if words[2] == "plan":
                written = next(word for word in words if word.startswith("-out=")).removeprefix("-out=")
            if words[2] == "apply":
                assert words[3:] == ["-input=false", written]


def test_incidents_are_removed_after_a_question_of_their_own(tree):
    """What makes the databases deletable touches them alone, is shown, and is asked about before it is applied."""
    body = (tree / "deploy.sh").read_text().split("DELETE_INCIDENTS:-no")[1].split("\n  else\n")[0]
    shown = body.index("-target=google_firestore_database.this -out=../build/plan.databases")
    assert shown < body.index("confirmed") < body.index("apply -input=false ../build/plan.databases")


FAKE_GCLOUD = r"""#!/bin/sh
case "$*" in
  auth\ list*) echo you@example.com ;;
  projects\ describe*) echo 123456789012 ;;
  billing*) echo True ;;
  functions\ regions*) echo us-central1 ;;
  run\ services\ describe*) echo own@example-project.iam.gserviceaccount.com ;;
  secrets\ versions\ add*) cat >/dev/null ;;
  storage\ buckets\ describe*) {bucket} ;;
  storage\ buckets\ create*) echo "create: taken" >&2; exit 1 ;;
esac
"""


@pytest.mark.parametrize(
    ("bucket", "says"),
    [
        ("echo 999999999999", "belongs to project 999999999999, not to example-project (123456789012)"),
        ("exit 1", "was not made; if another project has the name, set STATE_BUCKET"),
    ],
    ids=["of another project", "not ours to see"],
)
def test_anybody_s_bucket_is_not_taken_for_the_state(tree, tmp_path, bucket, says):
    """A stranger made the bucket with the name that can be guessed: nothing of Terraform runs."""
    for name, text in (
        ("gcloud", FAKE_GCLOUD.replace("{bucket}", bucket)),
        ("terraform", f"#!/bin/sh\ntouch {tmp_path}/ran\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tree / "empty-policy.toml").write_text("")
    done = deploy(
        tree, "plan", PROJECT="example-project", REGION="us-central1", ALERT_EMAILS="a@example.com",
        SERVICES_FILE="infra/services.example.toml", POLICY_FILE="empty-policy.toml",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert not (tmp_path / "ran").exists()


DENIED = "ERROR: (gcloud) PERMISSION_DENIED: The caller does not have permission"
DISABLED = (
    "Cloud Functions API has not been used in project 1 before or it is disabled. See cloudfunctions.googleapis.com"
)
UNTOUCHED = "What exists now: nothing was changed by this run."


def stopped(tree, folder, *words, tool, at, error, **more):
    """Run deploy.sh where one command of a tool fails with an error, as the real one prints it."""
    fails = f'case "$*" in {at}) printf "%s\\n" "{error}" >&2; exit 1;; esac\n'
    for name, text in (("gcloud", FAKE_GCLOUD.replace("{bucket}", "echo 123456789012")), ("terraform", "#!/bin/sh\n")):
        head, _, rest = text.partition("\n")
        (folder / name).write_text(f"{head}\n{fails if name == tool else ''}{rest}")
        (folder / name).chmod(0o755)
    (tree / "empty-policy.toml").write_text("")
    return deploy(
        tree, *words, "--yes", PROJECT="example-project", REGION="us-central1", ALERT_EMAILS="a@example.com",
        SERVICES_FILE="infra/services.example.toml", POLICY_FILE="empty-policy.toml",
        PATH=f"{folder}:{os.environ['PATH']}", TMPDIR=str(folder), **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "at", "error", "says"),
    [
        ("gcloud", "billing*", DENIED,
         ('it stopped at "login and project": your account does not have the right', UNTOUCHED, "ask an owner of project exam")),
        ("gcloud", "functions\\ regions*", DISABLED,
         ("an API is not switched on", UNTOUCHED, "gcloud services enable cloudfunctions.googleapis.com --project=exam")),
        ("gcloud", "billing*", "ERROR: Reauthentication failed. cannot prompt during non-interactive execution",
         ("the login has expired", UNTOUCHED, "log in: gcloud auth login")),
        ("terraform", "*init*", "Error: Error acquiring the state lock",
         ('at "Terraform\'s state": another run holds', UNTOUCHED, "terraform -chdir=infra force-unlock ID")),
        ("terraform", "*apply*plan", "Error 429: Quota exceeded for quota metric 'functions'",
         ("a quota is used up", "What exists now: a part of the installation; terraform -chdir=infra state list")),
        ("terraform", "*apply*plan.secrets", "Error: dial tcp: lookup secretmanager.googleapis.com: no such host",
         ("Google Cloud could not be reached", "secrets without a value, some or all of them", "HTTPS_PROXY included")),
        ("gcloud", "beta\\ run\\ services\\ update*", "ERROR: something new",
         ("a command ended with exit code 1; its own words stand above", "the whole installation but the sign-in")),
    ],
    ids=["denied", "api", "login", "locked", "half applied", "no network", "unheard of"],
)  # fmt: skip
def test_a_command_that_fails_ends_it_in_sentences(tree, tmp_path, tool, at, error, says):
    """What happened, what exists now, what to do next; the tool's own words stand above, and no file is left."""
    done = stopped(tree, tmp_path, "apply", tool=tool, at=at, error=error)
    assert done.returncode == 1, done.stdout + done.stderr
    assert error in done.stderr
    assert [text for text in says if text not in done.stderr] == []
    assert done.stderr.rstrip().endswith("Then run again: ./deploy.sh apply. It goes on with what is there.")
    assert {path.name for path in tmp_path.iterdir()} == {"gcloud", "terraform"}


def test_ctrl_c_ends_it_in_sentences(tree, tmp_path):
    """A terminal tells the whole group; there is nothing to mend before the next run."""
    (tmp_path / "gcloud").write_text("#!/bin/sh\necho asked >&2\nexec sleep 60\n")
    (tmp_path / "terraform").write_text("#!/bin/sh\n")
    for tool in ("gcloud", "terraform"):
        (tmp_path / tool).chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PROJECT": "p",
        "REGION": "r",
        "ALERT_EMAILS": "a@example.com",
    }
    with subprocess.Popen(
        ["./deploy.sh", "plan"], cwd=tree, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as running:  # fmt: skip
        assert "asked\n" in running.stderr
        os.killpg(running.pid, signal.SIGINT)
        said = running.stderr.read()
    assert running.returncode == 130
    assert said == (
        'deploy.sh: it stopped at "login and project": it was interrupted.\n'
        f"{UNTOUCHED}\n"
        "Next: run again: ./deploy.sh plan. It goes on with what is there.\n"
    )


def test_an_answer_that_is_no_yes_leaves_what_is_there_and_says_so(tree, tmp_path):
    """Without a terminal the question has no answer, and that is a no."""
    done = stopped(tree, tmp_path, "plan", tool="terraform", at="never", error="")
    assert done.returncode == 0, done.stderr
    body = (tree / "deploy.sh").read_text()
    assert body.count("read -r -p") == body.count("answer || answer=") == 1


@pytest.mark.parametrize("tool", ["gcloud", "terraform"])
def test_a_tool_that_is_not_installed_is_named(tree, tmp_path, tool):
    for name in ("bash", "sh", "dirname", "mktemp", "rm", "tee", "grep", "python3", "curl", "gcloud", "terraform"):
        if name != tool:
            (tmp_path / name).symlink_to(shutil.which(name) or "/bin/true")
    done = deploy(tree, "plan", PROJECT="p-1", REGION="r", ALERT_EMAILS="a@example.com", PATH=str(tmp_path))
    assert done.returncode == 2
    assert f"deploy.sh: {tool} is not installed; see docs/install-gcp.md" in done.stderr


def test_a_damaged_deploy_env_is_not_run(tree):
    """A shell would have run its first half, and what it says quotes a line that may be a secret."""
    (tree / "deploy.env").write_text("SLACK_TOKEN=xoxb-secret)\nPROJECT=p-1\n")
    try:
        done = deploy(tree, "plan")
    finally:
        (tree / "deploy.env").unlink()
    assert done.returncode == 2
    assert "deploy.sh: deploy.env was not read, it is no list of NAME=VALUE: line 1" in done.stderr
    assert "secret" not in done.stdout + done.stderr


def test_variables_that_are_not_there_are_missed_before_anything_is_made(tree):
    done = deploy(tree, "apply", "--dry-run", EXTRA_VARS="nowhere.tfvars.json")
    assert done.returncode == 2
    assert "deploy.sh: EXTRA_VARS names nowhere.tfvars.json, which is not there" in done.stderr
    assert "+ " not in done.stdout


def test_nobody_logged_in_is_found_before_anything_is_changed(tree, missing):
    """The real gcloud without an account: a sentence that says what to do, and no command that changes."""
    if shutil.which("gcloud") is None:
        missing("the gcloud command")
    done = deploy(tree, "apply", PROJECT="example-project", REGION="us-central1", ALERT_EMAILS="a@example.com")
    assert done.returncode == 2
    assert "nobody is logged in; run: gcloud auth login" in done.stderr
    assert "\n+ " not in done.stdout


@pytest.mark.parametrize(
    ("words", "more", "says"),
    [
        (["aply"], {}, "unknown argument: aply"),
        ([], {}, "usage: ./deploy.sh"),
        (["plan"], {}, "PROJECT"),
        (["plan"], {"PROJECT": "p-1234567"}, "REGION"),
        (["plan"], {"PROJECT": "p-1234567", "REGION": "us-east4"}, "ALERT_EMAILS"),
    ],
)
def test_what_is_missing_is_said(words, more, says, tree):
    """Exit 2 and the name of what is missing."""
    done = deploy(tree, *words, **more)
    assert done.returncode != 0
    assert says in done.stderr


def test_a_broken_services_file_stops_it(tree):
    """The mistakes are told as the agent tells them; nothing is staged."""
    (tree / "broken.toml").write_text('[[service]]\nname = "sre"\n')
    done = deploy(tree, "plan", "--dry-run", SERVICES_FILE="broken.toml")
    assert done.returncode == 2
    assert "platform is missing" in done.stderr
    assert "stage_functions" not in done.stdout


def test_destroying_asks_first(tree):
    """Without --yes and without an answer nothing is destroyed; a dry run only shows."""
    text = (tree / "deploy.sh").read_text()
    body = text.split("destroy() {")[1].split("\n}\n")[0]
    assert body.index("confirmed") < body.index("run ")


@pytest.mark.journey
def test_the_example_files_are_right(root):
    """What a newcomer copies is accepted as it stands, and nothing in it is automatic."""
    policy = parse_policy((root / "infra" / "policy.example.toml").read_text())
    assert policy.approvers
    assert all(rule.mode == "person" for rule in policy.rules)
    known = frozenset(load_fit_catalogue().accelerators)
    assert len(parse_services((root / "infra" / "services.example.toml").read_text(), known).services) == 2


@pytest.mark.journey
def test_the_price_is_the_sum_of_its_items(said):
    """Each item is shown with its date and reckoning."""
    lines = [line for line in said["plan"].stdout.splitlines() if " USD  " in line]
    *items, warm, cold = [float(line.split()[0]) for line in lines]
    assert warm == pytest.approx(sum(items))
    assert 0 < cold < warm
    assert all("2026-" in line for line in (*lines[:-2], lines[-1]))


def test_the_doctor_and_the_script_look_at_the_same_things(tree):
    """deploy.sh runs before the agent is there, so it says itself what the doctor asks: quotas, subscriptions, their deadline."""
    text = (tree / "deploy.sh").read_text()
    assert dict(re.findall(r"^ +(nvidia-[\w-]+)\) quota=(\w+) ;;$", text, re.MULTILINE)) == GPU_QUOTAS
    (subscriptions,) = re.findall(r"for subscription in ([\w -]+); do", text)
    assert subscriptions.split() == [f"{topic}-push" for topic in cloud.PUSHED]
    (deadline,) = re.findall(r"\$deadline == (\d+) \]\]", text)
    assert int(deadline) == cloud.DEADLINE_S


def test_every_secret_that_a_function_reads_can_be_stored(tree, root):
    """The names that deploy.sh stores are the settings that Terraform gives out as secrets."""
    text = (tree / "deploy.sh").read_text()
    (names,) = re.findall(r"for name in ([A-Z_ ]+); do", text)
    secrets = next(block for block in hcl2.loads((root / "infra" / "secrets.tf").read_text())["locals"])["secrets"]
    assert set(names.split()) == {key.strip('"') for key in secrets if not key.startswith("__")}


@pytest.mark.parametrize(
    ("settings", "stored"), [({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example"}, True), ({}, False)]
)
def test_credentials_of_a_collector_are_stored_where_one_is_named_and_never_shown(tree, settings, stored):
    """Other programs read the same variable of a shell: what belongs to one of them must not get into the cloud."""
    (tree / "traces.tfvars.json").write_text(json.dumps({"settings": settings}))
    done = deploy(
        tree, "apply", "--dry-run", EXTRA_VARS="traces.tfvars.json", OTEL_EXPORTER_OTLP_HEADERS="api-key=hush"
    )
    assert done.returncode == 0, done.stderr
    assert ("secrets versions add sre-otel-exporter-otlp-headers" in done.stdout) is stored
    assert ("--otel" in done.stdout) is stored
    assert "hush" not in done.stdout + done.stderr
