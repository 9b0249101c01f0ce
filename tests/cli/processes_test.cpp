// `zeroproof train` as one of several processes, a rank each, on the host runtime: what rank 0
// prints, what the others do, and how all end when one is killed or never starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTiny = "train --model tiny --batch 1 --length 4 --steps 2 ";

// The processes of one job, each started by a line of shell with its variables.
class Processes {
 public:
  explicit Processes(int size) : size_(size) {}

  // As torchrun does it, with a store in a folder. `then`: shell after the calls.
  std::vector<CommandResult> run(const std::string& arguments, const std::string& then = "") const {
    std::string script;
    for (int rank = 0; rank < size_; ++rank) script += start(rank, arguments);
    script += then + "\n";
    for (int rank = 0; rank < size_; ++rank) script += end(rank);
    const CommandResult shell = run_shell(script);
    EXPECT_EQ(0, shell.exit_code) << shell.err;
    return results();
  }

  std::string start(int rank, const std::string& arguments) const {
    const std::string number = std::to_string(rank);
    return "RANK=" + number + " LOCAL_RANK=" + number + " WORLD_SIZE=" + std::to_string(size_) +
           " " ZP_BINARY " " + arguments + " --store " + (scratch_ / "store") + " >" +
           (scratch_ / ("out" + number)) + " 2>" + (scratch_ / ("err" + number)) + " & p" + number +
           "=$!\n";
  }

  std::string path(const std::string& name) const { return scratch_ / name; }

 private:
  std::string end(int rank) const {
    const std::string number = std::to_string(rank);
    return "wait $p" + number + "; echo $? >" + (scratch_ / ("code" + number)) + "\n";
  }

  std::vector<CommandResult> results() const {
    std::vector<CommandResult> all;
    for (int rank = 0; rank < size_; ++rank) {
      const std::string number = std::to_string(rank);
      all.push_back({std::stoi(read_file(scratch_ / ("code" + number))),
                     read_file(scratch_ / ("out" + number)),
                     read_file(scratch_ / ("err" + number))});
    }
    return all;
  }

  int size_;
  ScratchFolder scratch_;
};

bool exists(const std::string& command) {
  return run_shell("command -v " + command).exit_code == 0;
}

TEST(Processes, Print_what_threads_print_and_only_once) {
  const std::pair<int, std::string> calls[] = {
      {2, std::string(kTiny) + "--stage 0 --check-baseline --json"},
      {2, std::string(kTiny) + "--stage 3 --dtype bf16 --check-baseline --json"},
      {3, std::string(kTiny) + "--stage 2"},
      {3, "train --scenario two_losses --stage 3 --check-baseline --json"},
      {2, "train --stage 1 --dtype fp16 --check-baseline --json"},
      {2, "train --scenario two_losses --quirks h4 --check-baseline"},
      {2, "train --scenario chained_engines --quirks h8 --backward tensor --check-baseline --json"},
      {2, "train --scenario two_losses --backward tensor --autograd-api none --check-baseline"},
  };
  for (const auto& [size, call] : calls) {
    SCOPED_TRACE(call);
    const CommandResult threads = zeroproof(call + " --world-size " + std::to_string(size));
    const auto processes = Processes(size).run(call);
    EXPECT_EQ(threads.exit_code, processes[0].exit_code) << processes[0].err;
    const std::string own_words = "\nreproduce: ";
    EXPECT_EQ(threads.out.substr(0, threads.out.find(own_words)),
              processes[0].out.substr(0, processes[0].out.find(own_words)));
    for (std::size_t rank = 1; rank < processes.size(); ++rank) {
      EXPECT_EQ(threads.exit_code, processes[rank].exit_code) << processes[rank].err;
      EXPECT_EQ("", processes[rank].out);
      EXPECT_EQ(threads.exit_code == 0, processes[rank].err.empty());
    }
  }
}

TEST(Processes, Write_the_traces_of_threads_a_file_a_rank) {
  const std::string calls[] = {std::string(kTiny) + "--stage 2",
                               "train --scenario reentrant --stage 3 --steps 2"};
  for (const std::string& call : calls) {
    const Processes processes(2);
    EXPECT_EQ(0, zeroproof(call + " --trace " + processes.path("threads.jsonl")).exit_code);
    for (const CommandResult& one : processes.run(call + " --trace " + processes.path("run.jsonl")))
      EXPECT_EQ(0, one.exit_code) << one.err;
    for (const char* rank : {"_r0.jsonl", "_r1.jsonl"}) {
      const std::string wanted = read_file(processes.path(std::string("threads") + rank));
      EXPECT_LT(1'000U, wanted.size());
      EXPECT_EQ(wanted, read_file(processes.path(std::string("run") + rank)));
    }
  }
}

TEST(Processes, All_end_with_the_error_of_one_that_cannot_write_its_trace) {
  const Processes processes(2);
  const auto all = processes.run(std::string(kTiny) + "--trace " + processes.path("no/run.jsonl"));
  for (const CommandResult& one : all) {
    EXPECT_EQ(2, one.exit_code);
    EXPECT_THAT(one.err, HasSubstr("no/run_r0.jsonl"));
  }
}

TEST(Processes, All_end_soon_when_one_is_killed) {
  const std::string ranks[] = {"0", "1"};
  for (const std::string& killed : ranks) {
    const std::string left = killed == "0" ? "1" : "0";
    const Processes processes(2);
    const std::string until_both_train = "while kill -0 $p0 && kill -0 $p1 && [ $(find " +
                                         processes.path("") +
                                         " -name '*.tmp' -size +0 | wc -l) -lt 2 ]; "
                                         "do sleep 0.1; done; ";
    const auto all =
        processes.run("train --model tiny --batch 1 --length 4 --steps 1000 --trace " +
                          processes.path("run.jsonl"),
                      until_both_train + "kill -9 $p" + killed + "; s=$SECONDS; wait $p" + left +
                          "; echo $((SECONDS - s)) >" + processes.path("seconds"));
    const CommandResult& survivor = all[left == "0" ? 0 : 1];
    EXPECT_EQ(137, all[killed == "0" ? 0 : 1].exit_code);
    EXPECT_EQ(1, survivor.exit_code) << survivor.err;
    const std::string said = left == "0" ? survivor.out : survivor.err;
    EXPECT_THAT(said, AllOf(HasSubstr("rank " + killed), HasSubstr("ended without a word")));
    EXPECT_GE(10, std::stoi(read_file(processes.path("seconds"))));
  }
}

TEST(Processes, Print_a_line_that_starts_them_all_again) {
  const std::string call = "train --scenario two_losses --quirks h4 --check-baseline";
  const CommandResult first = Processes(2).run(call)[0];
  const std::string start = "reproduce: ";
  const std::string line = last_line(first.out);
  ASSERT_THAT(line, ::testing::StartsWith(start));
  const CommandResult again = run_shell(line.substr(start.size()));
  EXPECT_EQ(first.out.substr(0, first.out.find(start)), again.out.substr(0, again.out.find(start)))
      << again.err;
}

TEST(Processes, Name_the_one_that_never_started) {
  for (const int rank : {0, 1}) {
    const Processes processes(2);
    const CommandResult only =
        run_shell(processes.start(rank, std::string(kTiny) + "--timeout 1") + "wait $p" +
                  std::to_string(rank) + "; code=$?; cat " +
                  processes.path("err" + std::to_string(rank)) + "; exit $code");
    EXPECT_EQ(1, only.exit_code);
    EXPECT_THAT(only.out, HasSubstr("rank " + std::to_string(rank) +
                                    " of 2 waited 1000 ms for rank " + std::to_string(1 - rank)));
  }
}

TEST(Processes, Say_what_does_not_go_together) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"RANK=0", "", "WORLD_SIZE of torchrun is not set"},
      {"RANK=0 WORLD_SIZE=2 PMI_RANK=1 PMI_SIZE=2", "", "those of PMI rank 1 of 2"},
      {"RANK=0 WORLD_SIZE=2", "--world-size 3", "torchrun started 2 processes, a rank each"},
      {"RANK=0 WORLD_SIZE=2", "--matrix full", "--matrix: with all ranks in one process"},
      {"RANK=0 WORLD_SIZE=2", "--scenario all", "--scenario all: with all ranks in one process"},
      {"RANK=0 WORLD_SIZE=2", "--check-properties", "--check-properties: with all ranks in one"},
      {"RANK=0 WORLD_SIZE=2", "--runtime sim", "--runtime sim: one process simulates all ranks"},
      {"RANK=0 WORLD_SIZE=2", "", "set MASTER_ADDR and MASTER_PORT"},
      {"RANK=0 WORLD_SIZE=1", "--store /tmp", "--store: this process is alone"},
      {"", "--store /tmp", "--store: this process is alone"},
      {"", "--timeout 0", "--timeout 0: give 1 to"},
  };
  for (const auto& [variables, flags, text] : cases) {
    const CommandResult result =
        run_shell(std::string("env ") + variables + " " ZP_BINARY " train " + flags);
    EXPECT_EQ(2, result.exit_code) << variables << " " << flags << result.err;
    EXPECT_THAT(result.err, HasSubstr(text)) << variables << " " << flags;
  }
}

TEST(Processes, Explore_shares_out_by_the_same_variables) {
  const std::string call = ZP_BINARY " explore plain --scheduler random --budget 4x --json";
  const CommandResult srun = run_shell("SLURM_PROCID=1 SLURM_NTASKS=2 " + call);
  const CommandResult flags = run_shell(call + " --shards 2 --shard-index 1");
  EXPECT_EQ(0, srun.exit_code) << srun.err;
  EXPECT_EQ(flags.out.substr(0, 200), srun.out.substr(0, 200));
  EXPECT_EQ(2, run_shell("RANK=2 WORLD_SIZE=2 " + call).exit_code);
}

// With every launcher that this machine has.
TEST(Processes, Train_under_real_launchers) {
  const std::string call =
      std::string(ZP_BINARY " ") + kTiny + "--stage 2 --check-baseline --color never";
  const std::string torchrun = "torchrun";
  const std::pair<std::string, std::string> launchers[] = {
      {"mpirun.openmpi",
       "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi "
       "--oversubscribe "
       "-n 2 "},
      {"mpiexec.hydra", "mpiexec.hydra -n 2 "},
      {torchrun,
       "env OMP_NUM_THREADS=1 " + torchrun + " --standalone --nproc-per-node 2 --no-python "},
      {torchrun, "env OMP_NUM_THREADS=1 " + torchrun +
                     " --master-port 29611 --nproc-per-node 2 "
                     "--no-python "},
  };
  int found = 0;
  for (const auto& [command, line] : launchers) {
    if (!exists(command)) continue;
    ++found;
    const CommandResult run = run_shell(line + call);
    EXPECT_EQ(0, run.exit_code) << line << run.err;
    EXPECT_THAT(run.out, HasSubstr("equal  tiny stage 2, 2 ranks")) << line;
    EXPECT_EQ(run.out.find("equal  tiny"), run.out.rfind("equal  tiny")) << line;
  }
  if (found == 0) GTEST_SKIP() << "none of mpirun.openmpi, mpiexec.hydra, torchrun is here";
}

TEST(Processes, All_say_what_GPUs_are_missing) {
  if (zeroproof("train --runtime cuda --world-size 1").exit_code != 77)
    GTEST_SKIP() << "there is a GPU: tests/cuda/processes.sh";
  for (const CommandResult& one : Processes(2).run(std::string(kTiny) + "--runtime cuda")) {
    EXPECT_EQ(77, one.exit_code);
    EXPECT_THAT(one.err, AllOf(HasSubstr("--runtime cuda: "), Not(HasSubstr("waited"))));
  }
}

}  // namespace
}  // namespace zeroproof::cli_test
