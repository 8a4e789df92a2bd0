#!/bin/sh
# Makes the bucket of compose.yaml, and the keys of its servers. Does nothing where they are there.
set -eu

mc alias set store http://minio:9000 "$MINIO_ROOT_USER" "$MINIO_ROOT_PASSWORD"
mc mb --ignore-existing store/orrery

give() { # KEY SECRET POLICY
    mc admin policy create store "orrery-$3" "/policies/$3.json"
    mc admin user add store "$1" "$2"
    # Refuses what is so already.
    mc admin policy attach store "orrery-$3" --user "$1" ||
        mc admin user info store "$1" | grep -q "orrery-$3"
}
give "$ORRERY_WRITER_KEY" "$ORRERY_WRITER_SECRET" writer
give "$ORRERY_READER_KEY" "$ORRERY_READER_SECRET" reader
