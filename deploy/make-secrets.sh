#!/bin/sh
# What compose.yaml reads from `secrets`: a password and an environment file for each database user, and a certificate
# that no one else trusts, to try it with. What exists stays. Run it in the folder of compose.yaml.
set -eu
umask 077
mkdir -p secrets/tls
for role in owner collector intake gateway curator publisher admin; do
    user=sb_$role
    [ $role = owner ] && user=owner
    [ -s secrets/$role.password ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > secrets/$role.password
    [ -s secrets/$role.env ] ||
        echo "SEARCHBLEND_DATABASE=postgresql://$user:$(cat secrets/$role.password)@database/searchblend" > secrets/$role.env
done
[ -s secrets/tls/certificate.pem ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=localhost -addext "subjectAltName=DNS:localhost,DNS:searches.example" \
    -keyout secrets/tls/key.pem -out secrets/tls/certificate.pem 2> /dev/null
