#!/bin/sh
# Makes the files that compose.yaml mounts: passwords, the envelope key, the first token, a certificate for localhost.
# What is there already stays. Keep a copy of the folder: without `keys`, stored secrets can't be opened.
set -eu
folder=${1:-$(dirname "$0")/secrets}
umask 077
mkdir -p "$folder"
chmod 0700 "$folder"
cd "$folder"

random() { openssl rand -hex 24; }
keep() { # NAME CONTENT: containers run as several users, so a file is readable; the folder is not
    test -e "$1" || { printf '%s' "$2" >"$1.new" && chmod 0444 "$1.new" && mv "$1.new" "$1"; }
}

keep owner_password "$(random)"
keep app_password "$(random)"
keep valkey_password "$(random)"
keep local_token "$(random)"
keep keys "k1:$(openssl rand -base64 32)"
keep database_url "postgresql://muster_app:$(cat app_password)@postgres:5432/muster?sslmode=disable"
keep database_owner_url "postgresql://muster_owner:$(cat owner_password)@postgres:5432/muster?sslmode=disable"
keep redis_url "redis://:$(cat valkey_password)@valkey:6379/0"
keep valkey_conf "requirepass $(cat valkey_password)
save \"\"
appendonly no
dir /data
"
if ! test -e tls_key || ! test -e tls_cert; then
    rm -f tls_key tls_cert
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls_key -out tls_cert 2>/dev/null
    chmod 0444 tls_key tls_cert
fi
echo "secrets are in $(pwd)"
