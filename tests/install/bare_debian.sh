#!/usr/bin/env bash
# bare_debian.sh FOLDER: proves that a machine with Debian's base alone can build and test
# the committed tree. Makes a minimal root file system under FOLDER/fs (kept as FOLDER/base.tar for
# the next run), unpacks `git archive HEAD` in it, and runs ./zp verify and ./zp test there, as root.
# No /proc, no locale, no git, no compiler: those that zp needs it must install itself.
#
#   ZP_MIRROR  package mirror (default: the one this machine's apt uses for ZP_SUITE)
#   ZP_SUITE   Debian release (default: bookworm)
#   ZP_REF     commit to prove (default: HEAD)
#
# Exit code 0 when both held. Needs root, debootstrap and git. No file system is mounted.
set -euo pipefail

(($# == 1)) || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
((EUID == 0)) || { echo 'bare_debian.sh: needs root (chroot)' >&2; exit 77; }
suite=${ZP_SUITE:-bookworm}
source=$(git -C "$(dirname -- "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
mkdir -p -- "$1"
folder=$(cd -- "$1" && pwd -P)
[[ $folder/ != "$source"/* ]] || { echo 'bare_debian.sh: FOLDER is inside the tree' >&2; exit 2; }
fs=$folder/fs

mirror=${ZP_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
  'Created-By: Packages' "Codename: $suite" 'Component: main' | head -n 1)}
[[ -n $mirror ]] || { echo "bare_debian.sh: set ZP_MIRROR to a mirror of $suite" >&2; exit 2; }

rm -rf -- "$fs"
if [[ ! -f $folder/base.tar ]]; then
  debootstrap --variant=minbase "$suite" "$fs" "$mirror" >"$folder/debootstrap.log" ||
    { tail -n 20 "$folder/debootstrap.log" >&2; exit 77; }
  tar -C "$fs" -cf "$folder/base.tar.part" . && mv "$folder/base.tar.part" "$folder/base.tar"
else
  mkdir -- "$fs" && tar -C "$fs" -xf "$folder/base.tar"
fi
# How this machine reaches the mirror is not the tree's business: its resolver and apt settings
# come along, its package sources do not.
cp -L /etc/resolv.conf /etc/hosts "$fs/etc/"
apt-config dump Acquire | grep -E '^Acquire::(Check-|http|https)' >"$fs/etc/apt/apt.conf.d/99host" ||
  true
mkdir "$fs/root/zeroproof"
git -C "$source" archive "${ZP_REF:-HEAD}" | tar -x -C "$fs/root/zeroproof"
echo "packages in the base: $(chroot "$fs" dpkg-query -W | wc -l)"

failed=0
total=0
for command in verify test; do
  begin=$SECONDS
  code=0
  nice -n 10 chroot "$fs" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    /root/zeroproof/zp "$command" </dev/null >"$folder/$command.log" 2>&1 || code=$?
  seconds=$((SECONDS - begin))
  total=$((total + seconds))
  tail -n 15 -- "$folder/$command.log"
  echo "== ./zp $command: exit $code, $seconds s (log: $folder/$command.log)"
  ((code == 0)) || failed=1
done
echo "== together: $total s on $(nproc) processors"
exit $failed
