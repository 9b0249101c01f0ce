#!/usr/bin/env bash
# two_hosts.sh ZEROPROOF: four processes as two hosts with two GPUs each, on one machine with two or more. NCCL_HOSTID
# names the hosts, for NCCL and for the runtime; between them NCCL goes over sockets. With two GPUs each host has both.
# A line a case; exit code 1 if one failed, 77 without two GPUs. NCCL's log proves which reductions went between hosts.
set -u
zeroproof=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpus=$("$zeroproof" doctor --json 2>/dev/null | sed -n 's/.*"gpus": *\([0-9]*\).*/\1/p')
if [ "${gpus:-0}" -lt 2 ]; then
  echo "skipped: needs two GPUs, CUDA sees ${gpus:-0}"
  exit 77
fi
failures=0
port=$((41000 + $$ % 20000))  # not one of processes.sh
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL

# every ARGUMENTS…: a process a rank; their exit codes in codes.
every() {
  local rank
  rm -f "$work"/nccl.*
  for rank in 0 1 2 3; do
    env RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((gpus < 4 ? rank % 2 : rank)) NCCL_HOSTID=host$((rank / 2)) MASTER_ADDR=127.0.0.1 \
      MASTER_PORT=$port NCCL_DEBUG_FILE="$work/nccl.$rank" timeout 90 "$zeroproof" "$@" >"$work/out$rank" 2>"$work/err$rank" &
    pids[$rank]=$!
  done
  for rank in 0 1 2 3; do
    wait "${pids[$rank]}"
    codes[$rank]=$?
  done
  port=$((port + 1))
}
# Reductions of NCCL among N ranks, as rank 0 logged them.
among() { grep -cE '(AllReduce|Reduce):.*nranks=?'"$1" "$work/nccl.0"; }
judge() {  # NAME
  local between
  between=$(among 2)
  if [ "${codes[*]}" = "0 0 0 0" ] && grep -q '^equal' "$work/out0" && [ "$between" -gt 0 ]; then
    echo "held    $1: $between reductions between two hosts, $(among 4) among all"
  else
    echo "failed  $1: exit codes ${codes[*]}; $between reductions between two hosts, $(among 4) among all"
    sed 's/^/          /' "$work/out0" "$work"/err? | head -12
    failures=$((failures + 1))
  fi
}

for stage in 0 1 2; do
  for dtype in float32 bf16; do
    every train --runtime cuda --model tiny --steps 4 --stage $stage --dtype $dtype --check-baseline
    judge "tiny, stage $stage, $dtype: within the bounds of the unsharded run"
  done
done
every train --runtime cuda --model tiny --steps 8 --stage 2 --dtype bf16 --check-baseline --cuda-graph
judge "tiny, stage 2, bf16, a captured iteration: within the bounds of the unsharded run"
exit $((failures > 0))
