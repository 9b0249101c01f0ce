#pragma once

#include <map>
#include <optional>
#include <string>

#include "zeroproof/model/result.h"

namespace zeroproof {

// Variables by name, those that are set.
using Environment = std::map<std::string, std::string>;

// One process of a job, as its launcher numbered it.
struct Launch {
  std::string launcher = {};  // "torchrun", "Open MPI", "PMI" or "Slurm"
  int rank = 0;
  int size = 1;                        // processes of the job
  std::optional<int> local_rank = {};  // among those of this machine
  std::optional<int> local_size = {};
  std::string run_id = {};          // what the launcher calls this run; empty: it has no name
  std::string master_address = {};  // MASTER_ADDR, where rank 0 can be reached; empty: not set
  std::optional<int> port = {};     // MASTER_PORT; the next one where torchrun itself listens there
  std::string store_token = {};     // ZEROPROOF_STORE_TOKEN; empty: not set
};

// What torchrun (or a script with its variables), mpirun of Open MPI, a launcher that speaks PMI
// (MPICH's, Intel's) or srun say; none: this process is not one of several. An error
// names the variables that are missing, are no numbers, or contradict each other.
Result<std::optional<Launch>> read_launch(const Environment& environment);

}  // namespace zeroproof
