#include <fmt/format.h>

#include <utility>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/pending_save.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/tensor_file.h"

namespace zeroproof {
namespace {

// One rank's work: a file for each of its tensors.
class Saver final : public CheckpointFolder {
 public:
  Saver(const TrainingState& state, FileSystem& files, std::string folder,
        const SaveOptions& options)
      : CheckpointFolder(files, std::move(folder), options, head_of(state, options),
                         part_files(options.place.tensor.size, options.place.expert.size)),
        state_(state) {}

 private:
  Result<void> write_part() override {
    PartManifest part;
    if (auto made = make_folder("zero"); !made) return made;
    for (const FullTensor& tensor : state_.parameters) {
      const StoredTensor record{tensor.name, std::string(kWeightKey), {}};
      if (auto written = write_tensor(tensor, record, part); !written) return written;
    }
    for (const FullTensor& tensor : state_.optimizer_state) {
      StateName name = state_name(tensor.name);
      const StoredTensor record{std::move(name.parameter), std::move(name.key), {}};
      if (auto written = write_tensor(tensor, record, part); !written) return written;
    }
    return write_part_record(part_file(options_.place), part_text(part));
  }

  Result<void> write_tensor(const FullTensor& tensor, StoredTensor record, PartManifest& part) {
    if (!is_written_by(options_.place, state_.partition_rules, record.parameter, record.key))
      return {};
    const std::string folder = parameter_folder(record.parameter);
    if (auto made = make_folder(folder); !made) return made;
    const std::string bytes = tensor_bytes(tensor, options_.dtype);
    record.file = record_of(bytes);
    auto written = write(tensor_file(record.parameter, record.key, options_.place), bytes);
    part.push_back(std::move(record));
    return written;
  }

  const TrainingState& state_;
};

bool leads(const ParallelPlace& place) {
  return place.tensor.rank == 0 && place.expert.rank == 0;
}

}  // namespace

Result<void> save_checkpoint(const TrainingState& state, FileSystem& files,
                             const std::string& folder, const SaveOptions& options) {
  return Saver(state, files, folder, options)
      .save(leads(options.place), check_saved_state(state, options));
}

std::unique_ptr<PendingSave> begin_checkpoint(TrainingState state, FileSystem& files,
                                              const std::string& folder,
                                              const SaveOptions& options) {
  const auto kept = std::make_shared<const TrainingState>(std::move(state));
  const auto make = [kept, &files, folder](const SaveOptions& own) {
    return std::make_unique<Saver>(*kept, files, folder, own);
  };
  return std::make_unique<PendingSave>(make, options, leads(options.place),
                                       check_saved_state(*kept, options));
}

}  // namespace zeroproof
