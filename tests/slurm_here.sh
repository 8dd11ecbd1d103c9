#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command under a Slurm of two nodes on this machine, as root, and ends it again:
#   tests/slurm_here.sh srun -N 2 -n 2 --mpi=pmix build/bench ...
# Nodes are network namespaces that a bridge connects, so ranks of two nodes reach each other over
# TCP alone. Needs munge and slurm-wlm (Debian). Everything it starts is in a process namespace that
# ends with the command; everything it writes is in a folder that it removes.
set -euo pipefail
if [ "${1:-}" != --inside ]; then
  exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" --inside "$@"
fi
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 0755 "$folder"
mkdir "$folder"/{state,munge} "$folder"/{spool,tmp}node{1,2}
export SLURM_CONF=$folder/slurm.conf
controller=$(hostname)
printf '%s\n' '127.0.0.1 localhost' "10.77.0.254 $controller" '10.77.0.1 node1' '10.77.0.2 node2' > "$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
ip link set lo up
ip link add nodes type bridge
ip addr add 10.77.0.254/24 dev nodes
ip link set nodes up

# Each node has a TmpFS of its own: PMIx makes a folder there that has one name on all nodes.
cat > "$SLURM_CONF" << EOF
ClusterName=here
SlurmctldHost=$controller(10.77.0.254)
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
SlurmdPidFile=$folder/slurmd%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd%n.log
SlurmdSpoolDir=$folder/spool%n
TmpFS=$folder/tmp%n
StateSaveLocation=$folder/state
NodeName=node1 NodeAddr=10.77.0.1 CPUs=$(nproc) RealMemory=1000 State=UNKNOWN
NodeName=node2 NodeAddr=10.77.0.2 CPUs=$(nproc) RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chmod 0700 "$folder/munge" "$folder/munge/key"
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" > /dev/null 2>&1 &
sleep 1
slurmctld -D > /dev/null 2>&1 &
sleep 1
for node in 1 2; do
  unshare --net --uts sh -c "until ip link set eth0 up 2> /dev/null; do sleep 0.1; done
    ip addr add 10.77.0.$node/24 dev eth0; ip link set lo up; hostname node$node
    exec slurmd -D -N node$node" > /dev/null 2>&1 &
  sleep 0.5  # it has its namespace
  ip link add "to_node$node" type veth peer name eth0 netns $!
  ip link set "to_node$node" master nodes up
done
for _ in $(seq 30); do
  [ "$(sinfo -h -o %t%D 2> /dev/null)" = idle2 ] && break
  sleep 1
done
"$@"
