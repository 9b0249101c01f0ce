// The verbs of `zeroproof`.
#include <array>

#include "props/cli/verb.h"

namespace zeroproof {
namespace {

constexpr std::array kVerbs = {
    VerbInfo{"verify", "checks this zeroproof itself: bundled traces, scenarios, faults",
             "  zeroproof verify\n"
             "  zeroproof verify --quick --junit out/verify.xml\n",
             make_verify},
    VerbInfo{"replay", "checks recorded traces on three levels, or runs a schedule again",
             "  zeroproof replay trace.jsonl.gz\n"
             "  zeroproof replay traces/ --levels state,properties --json\n"
             "  zeroproof replay trace.jsonl --policy exact\n",
             make_replay},
    VerbInfo{"watch", "follows a running job, and reports a hang within seconds",
             "  zeroproof watch trace\n"
             "  zeroproof watch trace --hang-after 120 --until-end\n"
             "  zeroproof watch trace --json --color never\n",
             make_watch},
    VerbInfo{"explore", "searches all orders of a scenario: of hooks, or of the engine",
             "  zeroproof explore S2b --policy deepspeed-0.18.7\n"
             "  zeroproof explore all --policy all --order-model any_topological\n"
             "  zeroproof explore mine.json --scheduler random --budget 10000x --seed 7\n"
             "  zeroproof explore zero_epilogue --set P=2,N=10 --no-reduction\n"
             "  zeroproof explore zero_epilogue --set P=2,N=11,defect=M9 --json\n"
             "  zeroproof explore hook_order --set P=2,N=8,stage=2,order=same\n"
             "  zeroproof explore two_losses --stage 3 --scheduler pct:2 --budget 30s\n",
             make_explore},
    VerbInfo{"list", "lists scenarios, policies, properties, schedulers, runtimes, verbs",
             "  zeroproof list\n"
             "  zeroproof list properties --json\n",
             make_list},
    VerbInfo{"show", "shows a trace or a schedule: as a timeline, a page or a chart",
             "  zeroproof show trace.jsonl.gz\n"
             "  zeroproof show run_r0.jsonl.gz run_r1.jsonl.gz --html --out run.html\n"
             "  zeroproof show finding-min.zps --svg --out finding.svg\n"
             "  zeroproof show trace.jsonl --gt 3 --kind engine.call,param.post_acc\n"
             "  zeroproof show trace.jsonl --from 100 --to 140\n",
             make_show},
    VerbInfo{"diff", "finds the first difference between the orders of two traces",
             "  zeroproof diff a.jsonl b.jsonl\n"
             "  zeroproof diff a.jsonl.gz b.jsonl.gz --full --skip coll:,wait:\n",
             make_diff},
    VerbInfo{"convert", "turns a trace into plain, gzip or Perfetto form",
             "  zeroproof convert trace.jsonl trace.jsonl.gz\n"
             "  zeroproof convert run_r0.jsonl.gz run_r1.jsonl.gz run.perfetto.json\n",
             make_convert},
    VerbInfo{"doctor", "says what this build and this machine have and lack",
             "  zeroproof doctor\n"
             "  zeroproof doctor --json\n",
             make_doctor},
    VerbInfo{"completion", "prints the completion script of a shell",
             "  source <(zeroproof completion bash)\n"
             "  zeroproof completion fish > ~/.config/fish/completions/zeroproof.fish\n",
             make_completion},
    VerbInfo{"conform", "runs recorded programs of PyTorch and DeepSpeed, and compares",
             "  zeroproof conform traces/\n"
             "  zeroproof conform P01_mlp2.jsonl.gz --dtype float32 --json\n"
             "  zeroproof conform tests/traces/deepspeed-edaa7221-cuda\n",
             make_conform},
    VerbInfo{kMutation, "hunts faults injected into the engine, each by drawn programs",
             "  zeroproof mutation\n"
             "  zeroproof mutation A01 B17 --budget 20s\n"
             "  zeroproof mutation --quick --json\n"},
    VerbInfo{"train", "runs the engine on a small model, against the unsharded baseline",
             "  zeroproof train --stage 2 --world-size 4 --dtype bf16 --check-baseline\n"
             "  zeroproof train --scenario two_losses --backward tensor --check-baseline\n"
             "  zeroproof train --matrix pairwise --json\n",
             make_train},
    VerbInfo{"export", "turns a scenario or finding into a PyTorch or DeepSpeed script",
             "  zeroproof export --torch S2 --policy deepspeed-0.18.3 --out s2.py\n"
             "  zeroproof export --torch S5 --policy deepspeed-0.18.7 --stage 2 --world-size 2\n"
             "  zeroproof export --torch S2 --framework ddp --find-unused-parameters\n",
             make_export},
    VerbInfo{"generate", "draws training programs that another engine can run",
             "  zeroproof generate --count 3\n"
             "  zeroproof generate --seed 7 --count 300 --for ddp.json --json\n",
             make_generate},
    VerbInfo{"hunt", "finds small programs that another engine trains wrongly",
             "  zeroproof hunt --engine ddp --budget 300x\n"
             "  zeroproof hunt --engine deepspeed --stage 2 --budget 30m --corpus found\n"
             "  zeroproof hunt --engine my_engine:make --set overwrites=true --out report\n"
             "  zeroproof hunt --replay found\n"
             "  zeroproof hunt --merge shard0 shard1 --corpus all\n",
             make_hunt},
    VerbInfo{"bisect", "finds the releases in which a finding of hunt came and went",
             "  zeroproof bisect found/NAME.json --versions 0.18.3..0.19.8\n"
             "  zeroproof bisect found/NAME.json --versions 2.11.0,2.15.0 --package torch\n",
             make_bisect},
    VerbInfo{"checkpoint", "inspects a checkpoint, checks it, or changes its layout",
             "  zeroproof checkpoint inspect runs/7b\n"
             "  zeroproof checkpoint verify runs/7b --tag global_step3000 --json\n"
             "  zeroproof checkpoint convert runs/7b whole --to universal\n"
             "  zeroproof checkpoint convert whole shards --to shards --ranks 8\n",
             make_checkpoint},
    VerbInfo{"record", "trains and writes hooktrace files that replay reads",
             "  zeroproof record --scenario reentrant --stage 3 --trace run.jsonl.gz\n"
             "  zeroproof record --policy deepspeed-0.18.7 --quirks upstream --trace up.jsonl\n",
             make_record},
};

}  // namespace

const ProgramInfo& program_info() {
  static constexpr ProgramInfo kProgram{
      .name = "zeroproof",
      .about =
          "Finds hook orders that break sharded training. Begin with one of these:\n"
          "  a job that hangs or trains wrongly\n"
          "    torchrun --nproc_per_node 2 -m zeroproof_recorder run --out trace train.py\n"
          "    zeroproof replay trace\n"
          "  an engine          zeroproof hunt --engine ddp --budget 3x\n"
          "  a hook policy      zeroproof explore S2 --policy deepspeed-0.18.3\n"
          "  a checkpoint       zeroproof checkpoint inspect FOLDER\n"};
  return kProgram;
}

std::span<const VerbInfo> verb_table() {
  return kVerbs;
}

}  // namespace zeroproof
