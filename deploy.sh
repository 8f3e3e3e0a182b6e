#!/usr/bin/env bash
# Brings the agent into the cloud: plan | apply | smoke | destroy. See docs/install-gcp.md.
# Every step can be run again after any failure; --dry-run prints what would be done and needs no credentials.
set -euo pipefail
umask 077  # plans and variables are written for nobody else
cd "$(dirname "$0")"

usage() {
  cat <<'TEXT'
usage: ./deploy.sh plan|apply|smoke|destroy [--dry-run] [--yes] [--record DIR]

  plan      check everything, stage the functions, show what Terraform would change
  apply     the same, and after your word change exactly that
  smoke     send a canary through the sink and wait until the agent has received it; with --record DIR also break
            SMOKE_SERVICE, after asking, and write its incident into DIR, without secrets and without whose it was
  destroy   take everything away again, after asking; incidents are kept unless you say otherwise

settings, from the environment or from deploy.env:
  PROJECT        where the agent will live                        (required)
  REGION         such as us-central1                              (required)
  ALERT_EMAILS         e-mail addresses that hear when the agent itself is in trouble, with commas   (required)
  SERVICES_FILE  what is watched                                  (default services.toml)
  POLICY_FILE    what may be changed, by whose word               (default policy.toml)
  STATE_BUCKET   where Terraform keeps its state                  (default PROJECT-sre-agent-state)
  SMOKE_SERVICE  a watched service on Cloud Run that nobody needs  (for smoke --record alone)
  EXTRA_VARS     further Terraform variables, a .tfvars.json file (optional)
  secrets        SLACK_TOKEN, SLACK_SIGNING_SECRET, PAGERDUTY_ROUTING_KEY, PAGERDUTY_SECRETS, NOTIFY_TARGETS,
                 WEBHOOK_SECRETS, WEBHOOK_DECIDERS, INGEST_SECRETS, MODEL_API_KEY, SERVICE_API_KEYS, FORM_KEY:
                 set one to store it as a new version; unset leaves what is stored; FORM_KEY is made where none is;
                 OTEL_EXPORTER_OTLP_HEADERS too, where EXTRA_VARS names a collector of traces
TEXT
}

say() { printf '%s\n' "$*"; }
fail() { printf 'deploy.sh: %s\n' "$*" >&2; told=yes; exit 2; }
step() { doing=$1; : >"$errors"; say "== $1 =="; }

# `tee -i`: Ctrl-C reaches all of them, and Terraform, which ends in order, must still be read.
# A command that changes something: shown always, done unless this is a dry run.
run() {
  printf '+ %s\n' "$(shown "$@")"
  if [[ $dry == no ]]; then { "$@" 2>&1 1>&3 | tee -i "$errors" >&2; } 3>&1; fi
}

# A command that only asks: its answer goes to stdout; a dry run answers with a stand-in.
ask() {
  local standin=$1
  shift
  printf '? %s\n' "$(shown "$@")" >&2
  if [[ $dry == yes ]]; then printf '%s\n' "$standin"; else { "$@" 2>&1 1>&3 | tee -i "$errors" >&2; } 3>&1; fi
}

# Whatever ends the script in the middle ends it in sentences: what happened, what exists now, what to do next.
ended() {
  local code=$?
  if [[ $code != 0 && $told == no ]]; then
    printf 'deploy.sh: it stopped at "%s": %s.\n' "$doing" "$(why "$code")" >&2
  fi
  if [[ $code != 0 && ($told == no || -n $changed) ]]; then
    printf 'What exists now: %s.\n' "${changed:-nothing was changed by this run}" >&2
  fi
  if [[ ($code == 130 || $code == 143) && $told == no ]]; then
    printf 'Next: run again: ./deploy.sh %s. It goes on with what is there.\n' "$action" >&2
  elif [[ $code != 0 && $told == no ]]; then
    printf 'Next: %s Then run again: ./deploy.sh %s. It goes on with what is there.\n' "$(next)" "$action" >&2
  fi
  rm -f "$errors"
}

# The last command's own error, as one cause; its words stand above.
why() {
  if [[ $1 == 130 || $1 == 143 ]]; then say "it was interrupted"
  elif said 'has not been used in project|SERVICE_DISABLED|API .*not enabled|is disabled'; then say "an API is not switched on"
  elif said 'PERMISSION_DENIED|does not have permission|Permission .* denied|forbidden|Error 403'; then
    say "your account does not have the right to do this"
  elif said 'Error acquiring the state lock'; then say "another run holds Terraform's state, or was killed while it did"
  elif said 'Reauthentication|invalid_grant|default credentials|not currently have an active account'; then
    say "the login has expired, or was never made"
  elif said 'quota|RESOURCE_EXHAUSTED'; then say "a quota is used up"
  elif said 'no such host|resolve|timed out|ServerNotFound|Connection'; then say "Google Cloud could not be reached"
  else say "a command ended with exit code $1; its own words stand above"; fi
}

next() {
  local api
  api=$(grep -oE '[a-z]+\.googleapis\.com' "$errors" | head -n 1) || api=
  if said 'has not been used in project|SERVICE_DISABLED|API .*not enabled|is disabled'; then
    say "switch it on: gcloud services enable ${api:-NAME.googleapis.com} --project=${PROJECT:-PROJECT}."
  elif said 'PERMISSION_DENIED|does not have permission|Permission .* denied|forbidden|Error 403'; then
    say "ask an owner of project ${PROJECT:-PROJECT} for the right that is named above (docs/install-gcp.md, step 1)."
  elif said 'Error acquiring the state lock'; then
    say "wait for the other run; if there is none: terraform -chdir=infra force-unlock ID, with the ID that is named above."
  elif said 'Reauthentication|invalid_grant|default credentials|not currently have an active account'; then
    say "log in: gcloud auth login && gcloud auth application-default login."
  elif said 'quota|RESOURCE_EXHAUSTED'; then say "ask for more of it (IAM & Admin, Quotas), or choose another REGION."
  elif said 'no such host|resolve|timed out|ServerNotFound|Connection'; then say "look at your network, HTTPS_PROXY included."
  else say "correct what is named above, then run it again."; fi
}

said() { grep -qiE "$1" "$errors"; }

shown() { printf '%q ' "$@"; }

confirmed() {
  [[ $yes == yes || $dry == yes ]] && return 0
  local answer
  read -r -p "$1 Type the project's id to go on: " answer || answer=
  [[ $answer == "$PROJECT" ]]
}

check_tools() {
  step "tools"
  local tool
  for tool in gcloud terraform python3 curl; do
    if command -v "$tool" >/dev/null; then say "  $tool: $(command -v "$tool")"
    elif [[ $dry == yes ]]; then say "  $tool: not found; it is needed to go on"
    else fail "$tool is not installed; see docs/install-gcp.md"; fi
  done
  python=python3
  if [[ -x .venv/bin/python ]]; then python=.venv/bin/python; fi
  "$python" -c 'import pydantic, re2' 2>/dev/null || fail "the agent's Python packages are not installed; run: make install"
}

check_account() {
  step "login and project"
  account=$(ask "you@example.com" gcloud auth list --filter=status:ACTIVE "--format=value(account)")
  [[ -n $account ]] || fail "nobody is logged in; run: gcloud auth login && gcloud auth application-default login"
  number=$(ask 123456789012 gcloud projects describe "$PROJECT" "--format=value(projectNumber)") ||
    fail "project $PROJECT is not there, or $account may not see it"
  say "  $account, project $PROJECT ($number)"
  local billing
  billing=$(ask True gcloud billing projects describe "$PROJECT" "--format=value(billingEnabled)")
  [[ $billing == True ]] || fail "project $PROJECT has no billing account"
  local region
  region=$(ask "$REGION" gcloud functions regions list "--project=$PROJECT" "--filter=name~/$REGION\$" "--format=value(name.basename())")
  [[ $region == *"$REGION"* ]] || fail "there are no functions in region $REGION"
}

# What services.toml says, as Terraform's variables; the services must be there, and their accounts are read.
read_watched() {
  step "watched services"
  [[ -f $SERVICES_FILE ]] || fail "$SERVICES_FILE is not there; copy infra/services.example.toml and name your services"
  [[ -f $POLICY_FILE ]] || fail "$POLICY_FILE is not there; an empty file is the policy in which nothing is automatic"
  mkdir -p build
  "$python" -m tools.cloud_values --services "$SERVICES_FILE" >build/values.tfvars.json || exit 2
  : >build/accounts
  local name project location accelerator account
  while IFS=$'\t' read -r name project location accelerator; do
    account=$(ask "$name@$project.iam.gserviceaccount.com" gcloud run services describe "$name" \
      "--project=$project" "--region=$location" "--format=value(spec.template.spec.serviceAccountName)") ||
      fail "service $name is not there in $project, $location; correct $SERVICES_FILE"
    say "  $name in $project, $location, $accelerator, runs as ${account:-the default account}"
    [[ -n $account ]] || fail "service $name runs as the default account, which others share; give it one of its own"
    printf '%s\t%s\n' "$name" "$account" >>build/accounts
  done < <(watched_on_cloud_run)
}

watched_on_cloud_run() {
  "$python" - build/values.tfvars.json <<'PY'
import json, sys
for name, s in json.load(open(sys.argv[1]))["watched"].items():
    if s["platform"] == "cloud_run":
        print(name, s["project"], s["location"], s["accelerator"], sep="\t")
PY
}

check_quota() {
  step "GPU quota (what a second revision needs beside the first while it comes up)"
  local name project location accelerator quota
  while IFS=$'\t' read -r name project location accelerator; do
    case $accelerator in
      nvidia-l4) quota=NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion ;;
      nvidia-rtx-pro-6000) quota=NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion ;;
      *) continue ;;
    esac
    say "  $name, $location: $(ask unknown gcloud beta quotas info describe "$quota" --service=run.googleapis.com \
      "--project=$project" "--format=value(dimensionsInfos[].details.value)" || say 'unknown; look at IAM & Admin, Quotas')"
  done < <(watched_on_cloud_run)
}

sends_traces() { [[ -n ${EXTRA_VARS:-} ]] && grep -q '"OTEL_EXPORTER_OTLP_ENDPOINT"' "$EXTRA_VARS"; }

stage() {
  step "one folder per function"
  local traces=()
  if sends_traces; then traces=(--otel); fi
  run "$python" tools/stage_functions.py --out build/functions --services "$SERVICES_FILE" --policy "$POLICY_FILE" \
    ${traces[@]+"${traces[@]}"}
}

prepare_state() {
  step "Terraform's state"
  # The name can be guessed, and names of buckets are shared by all of Google Cloud: whoever made one first would be given
  # the state, and could write what is applied next.
  local owner locked=()
  owner=$(ask '' gcloud storage buckets describe "gs://$STATE_BUCKET" --raw "--format=value(projectNumber)" 2>/dev/null) || owner=
  if [[ -z $owner ]]; then
    run gcloud storage buckets create "gs://$STATE_BUCKET" "--project=$PROJECT" "--location=$REGION" \
      --uniform-bucket-level-access --public-access-prevention ||
      fail "bucket $STATE_BUCKET was not made; if another project has the name, set STATE_BUCKET to one that is free"
    changed="the bucket $STATE_BUCKET for Terraform's state"
    run gcloud storage buckets update "gs://$STATE_BUCKET" --versioning
  elif [[ $owner != "$number" ]]; then
    fail "bucket $STATE_BUCKET belongs to project $owner, not to $PROJECT ($number); set STATE_BUCKET to one of your own"
  fi
  if grep -q 'h1:' infra/.terraform.lock.hcl; then locked=(-lockfile=readonly); fi
  run terraform -chdir=infra init -input=false -reconfigure "${locked[@]}" "-backend-config=bucket=$STATE_BUCKET" -backend-config=prefix=sre-agent
}

write_variables() {
  "$python" - "$PROJECT" "$REGION" "$ALERT_EMAILS" "$@" <<'PY'
import json, pathlib, sys
project, region, emails, *versions = sys.argv[1:]
rows = [line.split("\t") for line in pathlib.Path("build/accounts").read_text().splitlines()]
pathlib.Path("build/installation.tfvars.json").write_text(json.dumps({
    "project": project, "region": region, "alert_emails": [e.strip() for e in emails.split(",") if e.strip()],
    "runtime_accounts": dict(rows), "secret_versions": dict(v.split("=", 1) for v in versions),
    "sources": str(pathlib.Path("build/functions").resolve()),
}, indent=2))
PY
  variables=(-var-file=../build/values.tfvars.json -var-file=../build/installation.tfvars.json)
  if [[ -n ${EXTRA_VARS:-} ]]; then
    variables+=("-var-file=$(realpath "$EXTRA_VARS")")
  fi
}

# Secrets never touch Terraform: their containers are made first, versions are added here, and only numbers are passed on.
store_secrets() {
  step "secrets"
  write_variables
  if [[ $1 == apply ]]; then
    run terraform -chdir=infra plan -input=false "${variables[@]}" -target=google_secret_manager_secret.setting -out=../build/plan.secrets
    confirmed "This makes the secrets that are not there yet, and stores the values that are set." || fail "nothing was changed"
    changed="secrets without a value, some or all of them, and what was there before"
    run terraform -chdir=infra apply -input=false ../build/plan.secrets
    changed="the secrets, and what was there before"
  fi
  local name secret version versions=()
  for name in RECEIPT_KEY SLACK_TOKEN SLACK_SIGNING_SECRET PAGERDUTY_ROUTING_KEY PAGERDUTY_SECRETS NOTIFY_TARGETS WEBHOOK_SECRETS WEBHOOK_DECIDERS INGEST_SECRETS MODEL_API_KEY SERVICE_API_KEYS FORM_KEY OTEL_EXPORTER_OTLP_HEADERS; do
    if [[ $name == OTEL_* ]] && ! sends_traces; then continue; fi  # a shell may have it for other programs
    secret="sre-$(printf '%s' "$name" | tr 'A-Z_' 'a-z-')"
    version=$(ask 1 gcloud secrets versions list "$secret" "--project=$PROJECT" --filter=state=ENABLED --limit=1 "--format=value(name)") || version=
    if [[ $1 == apply && $name == FORM_KEY && -z $version && -z ${FORM_KEY:-} ]]; then
      FORM_KEY=$("$python" -c 'import secrets; print(secrets.token_urlsafe(48))')
    fi
    if [[ $1 == apply && -n ${!name:-} ]]; then
      add_version "$secret" "${!name}"
      version=$(ask 1 gcloud secrets versions list "$secret" "--project=$PROJECT" --filter=state=ENABLED --limit=1 "--format=value(name)")
    fi
    if [[ -n $version ]]; then versions+=("$name=$version"); else say "  $name: not stored; what needs it stays off"; fi
  done
  write_variables "${versions[@]}"
}

add_version() {
  printf '+ gcloud secrets versions add %s --project=%s --data-file=-   (the value is piped in, not shown)\n' "$1" "$PROJECT"
  if [[ $dry == no ]]; then printf '%s' "$2" | gcloud secrets versions add "$1" "--project=$PROJECT" --data-file=- >/dev/null; fi
}

list_resources() {
  step "what Terraform describes"
  awk '/^resource /{gsub(/"/,""); printf "  %s %s\n", $2, $3}' infra/*.tf infra/modules/*/*.tf | sort
}

cost() {
  step "what it costs per month"
  "$python" -m tools.cloud_cost
}

prepare() {
  check_tools
  check_account
  read_watched
  check_quota
  stage
  prepare_state
}

plan() {
  prepare
  store_secrets plan
  if [[ $dry == yes ]]; then list_resources; fi
  run terraform -chdir=infra plan -input=false "${variables[@]}" -out=../build/plan
  cost
}

apply() {
  prepare
  cost
  store_secrets apply
  if [[ $dry == yes ]]; then list_resources; fi
  run terraform -chdir=infra plan -input=false "${variables[@]}" -out=../build/plan
  confirmed "This changes project $PROJECT, exactly as shown." || fail "nothing but secrets was changed"
  changed="a part of the installation; terraform -chdir=infra state list names it"
  run terraform -chdir=infra apply -input=false ../build/plan
  changed="the whole installation but the sign-in before the console"
  # IAP stands before the console; its audience is the one that Terraform has told the function.
  run gcloud beta run services update sre-console "--project=$PROJECT" "--region=$REGION" --iap --quiet
  run terraform -chdir=infra output
  say "Next: ./deploy.sh smoke, then docs/install-gcp.md, 'Slack'."
}

smoke() {
  check_tools
  check_account
  step "subscriptions"
  local subscription deadline
  for subscription in sre-log-events-push sre-alerts-push sre-incidents-push sre-decisions-push; do
    deadline=$(ask 600 gcloud pubsub subscriptions describe "$subscription" "--project=$PROJECT" "--format=value(ackDeadlineSeconds)")
    [[ $deadline == 600 ]] || fail "$subscription has a deadline of $deadline s, not 600: run ./deploy.sh apply"
    say "  $subscription: deadline $deadline s"
  done
  step "a canary through the sink"
  run gcloud logging write sre-canary "smoke test: does the agent receive this?" "--project=$PROJECT"
  local received='' try
  for try in 1 2 3 4 5 6 7 8 9 10 11 12; do
    received=$(ask received gcloud logging read 'resource.labels.service_name="sre-on-log-event" AND jsonPayload.message="canary.received"' \
      "--project=$PROJECT" --freshness=3m --limit=1 "--format=value(timestamp)")
    if [[ -n $received ]]; then break; fi
    say "  not yet received ($try of 12)"
    sleep 10
  done
  [[ -n $received ]] || fail "the canary was not received within two minutes; run: sre-agent doctor"
  say "  received: $received"
  step "an open function refuses who brings no signature"
  local url status
  url=$(ask https://sre-decide.example gcloud run services describe sre-decide "--project=$PROJECT" "--region=$REGION" "--format=value(status.url)")
  status=$(ask 401 curl --silent --output /dev/null --write-out '%{http_code}' --max-time 30 --data '{}' "$url")
  case $status in 4??) say "  decide answers $status" ;; *) fail "decide answers $status to an unsigned request" ;; esac
  say "smoke test passed"
  if [[ -n $record ]]; then record_incident "$url"; fi
}

# One incident on purpose: a revision with ten seconds to start, which no model server keeps; the older one goes on serving.
record_incident() {
  read_watched
  step "an incident of ${SMOKE_SERVICE:-SMOKE_SERVICE}"
  local name project location kept was port began code=0
  while IFS=$'\t' read -r name project location _; do
    if [[ $name == "${SMOKE_SERVICE:-$name}" ]]; then break; fi
    name=
  done < <(watched_on_cloud_run)
  [[ -n ${name:-} ]] || fail "SMOKE_SERVICE names no watched service on Cloud Run; name one of $SERVICES_FILE"
  local follow=("$python" -m tools.smoke_record "--service=$name" "--out=$record" "--project=$PROJECT" "--number=$number"
    "--account=$account")
  export DECIDE_URL=${DECIDE_URL:-$1} PLATFORM=cloud_run:$project SERVICES=$SERVICES_FILE
  run "${follow[@]}" --check || { code=$?; told=yes; say "Nothing was broken." >&2; exit "$code"; }
  kept=build/$name.before-smoke.yaml
  [[ ! -e $kept ]] || fail "$kept is there from an earlier run; put the service back by it if need be, and take it away"
  port=$(ask 8080 gcloud run services describe "$name" "--project=$project" "--region=$location" \
    "--format=value(spec.template.spec.containers[0].ports[0].containerPort)")
  was=$(ask '' gcloud run services describe "$name" "--project=$project" "--region=$location" --format=export)
  confirmed "This makes a revision of $name that cannot come up." || fail "nothing was broken"
  if [[ $dry == no ]]; then printf '%s\n' "$was" >"$kept"; fi
  began=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  changed="a revision of $name that cannot come up; $kept holds the service as it was"
  run gcloud run services update "$name" "--project=$project" "--region=$location" --async \
    "--startup-probe=tcpSocket.port=${port:-8080},initialDelaySeconds=0,periodSeconds=10,timeoutSeconds=10,failureThreshold=1"
  run "${follow[@]}" "--since=$began" || code=$?
  say "If $name is not as it was: gcloud run services replace $kept --project=$project --region=$location"
  if [[ $code != 0 ]]; then told=yes; exit "$code"; fi
}

destroy() {
  check_tools
  check_account
  confirmed "This takes the agent out of project $PROJECT. Incidents stay in Firestore unless DELETE_INCIDENTS=yes." ||
    fail "nothing was destroyed"
  read_watched
  stage
  prepare_state
  store_secrets plan
  local entry
  if [[ ${DELETE_INCIDENTS:-no} == yes ]]; then
    run terraform -chdir=infra plan -input=false "${variables[@]}" -var=deletion_protection=false -target=google_firestore_database.this -out=../build/plan.databases
    confirmed "This lifts the protection of both databases, as shown; what follows deletes every incident and the record of decisions." ||
      fail "nothing was destroyed"
    changed="the installation, with databases that may be deleted now"
    run terraform -chdir=infra apply -input=false ../build/plan.databases
  else
    for entry in 'google_firestore_database.this["state"]' 'google_firestore_database.this["control"]'; do
      run terraform -chdir=infra state rm "$entry" || say "  $entry was gone already"
    done
  fi
  # A key ring can never be deleted, and without its key nothing encrypted could be read again.
  for entry in google_kms_crypto_key.data google_kms_crypto_key.receipts google_kms_key_ring.this; do
    run terraform -chdir=infra state rm "$entry" || say "  $entry was gone already"
  done
  run terraform -chdir=infra plan -destroy -input=false "${variables[@]}" -var=deletion_protection=false -out=../build/plan.destroy
  confirmed "This takes away exactly what is shown." || fail "nothing more was destroyed"
  changed="what is left of the installation; terraform -chdir=infra state list names it"
  run terraform -chdir=infra apply -input=false ../build/plan.destroy
}

dry=no
yes=no
record=
action=
told=no
doing=start
changed=
errors=$(mktemp) || { printf 'deploy.sh: no file can be made in %s; make room, or set TMPDIR\n' "${TMPDIR:-/tmp}" >&2; exit 2; }
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  fail "bash 4.4 or newer is needed, and this is $BASH_VERSION; on macOS: brew install bash"
fi
while (($#)); do
  word=$1
  shift
  case $word in
    --record) record=${1:-}; [[ $record == [!-]* ]] || fail "--record wants a folder that is not there yet"; shift ;;
    --dry-run) dry=yes ;;
    --yes) yes=yes ;;
    -h | --help) usage; exit 0 ;;
    plan | apply | smoke | destroy) action=$word ;;
    *) usage >&2; fail "unknown argument: $word" ;;
  esac
done
if [[ -z $action && $dry == yes ]]; then action=apply; fi
[[ -n $action ]] || { usage >&2; told=yes; exit 2; }
[[ -z $record || $action == smoke ]] || fail "--record belongs to smoke"
[[ -z $record || ! -e $record ]] || fail "$record is there already; --record wants a folder that is not there yet"

if [[ -f deploy.env ]]; then
  # What bash says quotes the line, which may hold a secret: its number is enough.
  words=$(bash -n deploy.env 2>&1) || fail "deploy.env was not read, it is no list of NAME=VALUE: $(grep -o 'line [0-9]*' <<<"$words" | head -n 1)"
  # shellcheck source=/dev/null
  source deploy.env
fi
if [[ $dry == yes ]]; then
  PROJECT=${PROJECT:-example-project}
  REGION=${REGION:-us-central1}
  ALERT_EMAILS=${ALERT_EMAILS:-you@example.com}
  if [[ ! -f ${SERVICES_FILE:-services.toml} ]]; then SERVICES_FILE=infra/services.example.toml; fi
  if [[ ! -f ${POLICY_FILE:-policy.toml} ]]; then POLICY_FILE=infra/policy.example.toml; fi
fi
for setting in PROJECT REGION ALERT_EMAILS; do
  [[ -n ${!setting:-} ]] || fail "$setting is not set; see: ./deploy.sh --help, and docs/install-gcp.md, step 4"
done
if [[ -n ${EXTRA_VARS:-} && ! -f $EXTRA_VARS ]]; then
  fail "EXTRA_VARS names $EXTRA_VARS, which is not there; name a .tfvars.json file, or unset it"
fi
SERVICES_FILE=${SERVICES_FILE:-services.toml}
POLICY_FILE=${POLICY_FILE:-policy.toml}
STATE_BUCKET=${STATE_BUCKET:-$PROJECT-sre-agent-state}
[[ -z $record || -n ${SMOKE_SERVICE:-} || $dry == yes ]] ||
  fail "SMOKE_SERVICE is not set; --record breaks that service on purpose: name a watched one on Cloud Run that nobody needs"
variables=()
number=
account=

"$action"
