#!/bin/sh
# Tries what masters ask of Kubernetes against a real API server: allocation with its conflicts, no free server, the watch, deletion, and whether
# the role in deploy/kubernetes/master.yaml is enough. Part of `make nightly` alone: the API server is built from Debian's source package, once, which
# takes a quarter of an hour; after that the check takes a minute.
#
#   scripts/kubernetes-check.sh            on Debian; as root it installs the packages that are missing
#
# MUSE_KUBERNETES names the folder for the build, MUSE_KUBE_APISERVER a finished kube-apiserver.
set -eu
cd "$(dirname "$0")/.."

mkdir -p "${MUSE_KUBERNETES:-${TMPDIR:-/tmp}/muse-kubernetes}"
folder=$(cd "${MUSE_KUBERNETES:-${TMPDIR:-/tmp}/muse-kubernetes}" && pwd)
server=${MUSE_KUBE_APISERVER:-$folder/kube-apiserver}
first_port=${MUSE_KUBERNETES_PORT:-26600}
reflect2=/usr/share/gocode/src/github.com/modern-go/reflect2

missing=
needs() {
    [ -e "$1" ] || command -v "$1" > /dev/null || missing="$missing $2"
}
needs etcd etcd-server
needs protoc protobuf-compiler
needs /usr/include/google/protobuf/descriptor.proto libprotobuf-dev
needs curl curl
needs openssl openssl
if [ ! -x "$server" ]; then
    needs go golang-go
    needs $reflect2 golang-github-modern-go-reflect2-dev
fi
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "skipped: install$missing first"
        exit 77
    fi
    apt-get -qq update
    # RUNLEVEL=1 keeps etcd's package from starting it.
    # shellcheck disable=SC2086
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing > /dev/null
fi

# The source as Debian publishes it, without touching the machine's list of sources, and built as Debian builds it: without modules, and with the
# description of its interface generated first.
build() {
    mkdir -p "$folder/lists/partial" "$folder/source" "$folder/go/src/k8s.io"
    echo 'deb-src http://deb.debian.org/debian bookworm main' > "$folder/sources.list"
    debian() {
        apt-get -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$folder/lists" "$@"
    }
    cd "$folder"
    debian -q update
    debian -q source --download-only kubernetes
    tar -xzf kubernetes_*.orig.tar.gz -C source --strip-components=1
    # The vendored copy does not know how newer Go keeps maps.
    vendored=source/vendor/github.com/modern-go/reflect2
    rm -f $vendored/*.go $vendored/*.s
    cp $reflect2/*.go $reflect2/*.s $vendored
    ln -sfn "$folder/source" go/src/k8s.io/kubernetes
    cd go/src/k8s.io/kubernetes
    export GOPATH="$folder/go" GOCACHE="$folder/cache" GO111MODULE=off CGO_ENABLED=0
    go build -o "$folder/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
    grep -rl --include='*.go' --exclude='*_test.go' '+k8s:openapi-gen=' pkg cmd staging/src/k8s.io |
        grep -v -E '^staging/src/k8s.io/(code-generator|sample-apiserver)/' | xargs -n 1 dirname | sort -u |
        sed 's#^staging/src/#vendor/#; s#^#k8s.io/kubernetes/#' > "$folder/described"
    "$folder/openapi-gen" -h hack/boilerplate/boilerplate.generatego.txt -i "$(paste -s -d , "$folder/described")" \
        -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi -r "$folder/violations"
    go build -o "$server" ./cmd/kube-apiserver
}
if [ ! -x "$server" ]; then
    (build)
fi

work=$(mktemp -d)
etcd_pid='' server_pid=''
end() {
    [ -z "$server_pid" ] || kill "$server_pid" 2> /dev/null || true
    [ -z "$etcd_pid" ] || kill "$etcd_pid" 2> /dev/null || true
    wait 2> /dev/null || true
    rm -rf "$work"
}
trap end EXIT INT TERM

etcd=http://127.0.0.1:$first_port
peer=http://127.0.0.1:$((first_port + 1))
secure=$((first_port + 2))
etcd --data-dir "$work/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" --log-level error > "$work/etcd.log" 2>&1 &
etcd_pid=$!

# Who asks: one who may do everything, for the test, and a master, who may do what its role says.
openssl genrsa -out "$work/accounts.key" 2048 2> /dev/null
cat > "$work/tokens.csv" <<END
token-of-the-test,test,1,system:masters
token-of-a-master,system:serviceaccount:muse:muse-master,2
END
"$server" --etcd-servers "$etcd" --bind-address 127.0.0.1 --secure-port "$secure" --cert-dir "$work/certificates" --token-auth-file "$work/tokens.csv" \
    --authorization-mode RBAC --service-account-issuer https://muse.test --service-account-key-file "$work/accounts.key" \
    --service-account-signing-key-file "$work/accounts.key" --disable-admission-plugins ServiceAccount > "$work/server.log" 2>&1 &
server_pid=$!

api=https://127.0.0.1:$secure
ask() {
    curl -sk -H 'Authorization: Bearer token-of-the-test' "$@"
}
tries=0
until [ "$(ask "$api/readyz")" = ok ]; do
    tries=$((tries + 1))
    if [ $tries -gt 120 ] || ! kill -0 $server_pid; then
        tail -n 20 "$work/server.log" >&2
        echo 'the API server does not start' >&2
        exit 1
    fi
    sleep 0.5
done

# The kind of object, as little of it as is needed, and the role of the manifests.
created() {
    answer=$(ask -o "$work/answer" -w '%{http_code}' -H 'Content-Type: application/yaml' --data-binary @- "$api$1")
    case $answer in
        201 | 409) ;;
        *)
            cat "$work/answer" >&2
            echo "$1: $answer" >&2
            exit 1
            ;;
    esac
}
created /apis/apiextensions.k8s.io/v1/customresourcedefinitions < tests/agones/gameservers.yaml
of_kind() {
    awk -v kind="$1" 'BEGIN { RS = "---\n" } $0 ~ "\nkind: " kind "\n" { print }' deploy/kubernetes/master.yaml
}
of_kind Namespace | created /api/v1/namespaces
of_kind Role | created /apis/rbac.authorization.k8s.io/v1/namespaces/muse/roles
of_kind RoleBinding | created /apis/rbac.authorization.k8s.io/v1/namespaces/muse/rolebindings
until ask -f "$api/apis/agones.dev/v1/namespaces/muse/gameservers" > /dev/null; do
    sleep 0.2
done

# What the programs are told: one file for each of the two.
for who in test a-master; do
    cat > "$work/$who.yaml" <<END
apiVersion: v1
kind: Config
clusters: [{name: muse, cluster: {server: "$api", insecure-skip-tls-verify: true}}]
users: [{name: muse, user: {token: token-of-$( [ $who = test ] && echo the-test || echo a-master )}}]
contexts: [{name: muse, context: {cluster: muse, user: muse, namespace: muse}}]
current-context: muse
END
done
KUBECONFIG=$work/a-master.yaml MUSE_KUBERNETES_TEST=$work/test.yaml \
    cargo test -p muse-cli --features agones-tests --test agones -- --ignored --test-threads 1 real
