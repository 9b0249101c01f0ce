#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "props/train/train_run.h"

namespace zeroproof::train {

enum class MatrixKind : std::uint8_t {
  pairwise,  // every pair of two values, one from each of two axes, in some cell
  full,
};

// The axes of the equality matrix; an empty one stands for all its values.
struct MatrixAxes {
  std::vector<int> stages;
  std::vector<int> worlds;
  std::vector<Precision> precisions;
  std::vector<std::string> scenarios;
  std::vector<BackwardKind> backwards;
  std::vector<DataMode> data;
};

// Cells that apply, in a fixed order; what is no axis is taken from `base`.
std::vector<TrainCell> matrix_cells(MatrixKind kind, const MatrixAxes& axes, const TrainCell& base);

struct MatrixReport {
  std::vector<TrainReport> cells;
  std::int64_t count(CellStatus status) const;
  bool is_good() const;
};

// Every cell against the baseline; stops early when `should_stop` says so.
MatrixReport run_matrix(const std::vector<TrainCell>& cells,
                        const std::function<void(std::size_t done)>& on_cell = {},
                        const std::function<bool()>& should_stop = {});

}  // namespace zeroproof::train
