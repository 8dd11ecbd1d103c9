#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command under a Slurm of one node on this machine, as root, and ends it again:
#   tests/slurm_here.sh srun -n 2 --mpi=pmix build/bench ...
# Needs munge and slurm-wlm (Debian). Everything it writes is in a folder that it removes.
set -euo pipefail
folder=$(mktemp -d)
host=$(hostname)
export SLURM_CONF=$folder/slurm.conf
mkdir "$folder"/{state,spool,munge}
chmod 0755 "$folder"
cat > "$SLURM_CONF" <<EOF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdSpoolDir=$folder/spool
StateSaveLocation=$folder/state
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chmod 0700 "$folder/munge" "$folder/munge/key"
end() {
  kill $(jobs -p) 2> /dev/null || true
  wait 2> /dev/null || true
  rm -rf "$folder"
}
trap end EXIT
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" > /dev/null 2>&1 &
sleep 1
slurmctld -D > /dev/null 2>&1 &
sleep 1
slurmd -D > /dev/null 2>&1 &
for _ in $(seq 30); do
  sinfo -h -o %t 2> /dev/null | grep -q idle && break
  sleep 1
done
"$@"
