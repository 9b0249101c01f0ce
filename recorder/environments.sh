# Environments with releases of PyTorch, DeepSpeed and Megatron-core from PyPI, sourced by tests/versions.sh and
# upstream/run.sh. $envs is their folder: $ZP_ENVS, or ~/.cache/zeroproof/envs; 5 GB for each PyTorch.
envs=${ZP_ENVS:-$HOME/.cache/zeroproof/envs}

pip_into() { # pip_into PYTHON OPTION... PACKAGE...
  "$1" -m pip install --quiet --no-cache-dir --disable-pip-version-check "${@:2}"
}

make_torch() { # make_torch TORCH NUMPY
  local home=$envs/torch-$1
  [[ -x $home/bin/python ]] && "$home/bin/python" -c 'import torch, numpy' 2>/dev/null && return
  echo "making $home" >&2
  "${ZP_PYTHON:-python3.11}" -m venv "$home" || return
  pip_into "$home/bin/python" "torch==$1" "$2" setuptools wheel packaging psutil py-cpuinfo hjson \
    msgpack einops tqdm pydantic ninja
}

make_deepspeed() { # make_deepspeed TORCH VERSION: a layer for PYTHONPATH; no operator is built
  [[ -d $envs/ds-$2/deepspeed ]] && return
  echo "making $envs/ds-$2" >&2
  DS_BUILD_OPS=0 DS_ACCELERATOR=cpu pip_into "$envs/torch-$1/bin/python" --no-deps \
    --no-build-isolation --target "$envs/ds-$2" "deepspeed==$2"
}

# Its newest releases ask for Python 3.12, and what the subject uses of them runs on 3.10.
make_megatron() { # make_megatron TORCH VERSION: a layer for PYTHONPATH; no kernel is built
  [[ -d $envs/megatron-$2/megatron ]] && return
  echo "making $envs/megatron-$2" >&2
  pip_into "$envs/torch-$1/bin/python" --no-deps --ignore-requires-python \
    --target "$envs/megatron-$2" "megatron-core==$2"
}

newest_release() { # newest_release PACKAGE: the newest that the package index has for this Python
  "${ZP_PYTHON:-python3.11}" -m pip index versions --disable-pip-version-check "$1" 2>/dev/null |
    sed -n '1s/.*(\(.*\)).*/\1/p'
}
