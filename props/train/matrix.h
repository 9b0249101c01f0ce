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
std::vector<TrainCell> matrix_cells(MatrixKind kind, const MatrixAxes& given,
                                    const TrainCell& base);

// What became of one property in all cells.
struct PropertyTally {
  const Property* property = nullptr;  // static
  std::int64_t held = 0;               // cells
  std::int64_t falsified = 0;
  std::string reason;  // of the last cell in which it was not applicable

  bool was_judged() const { return held + falsified > 0; }
};

// Cells keep of their properties what went wrong; the rest is in the tallies.
struct MatrixReport {
  std::vector<TrainReport> cells;
  std::vector<PropertyTally> properties;  // in catalogue order; of cells that judged any
  std::int64_t count(CellStatus status) const;
  bool is_good() const;
  std::int64_t properties_held() const;  // in some cell, and falsified in none

  void add(TrainReport cell);
};

struct MatrixOptions {
  TrainChecks checks = {.has_baseline = true};
  std::function<void(std::size_t done)> on_cell;
  std::function<bool()> should_stop;  // asked before each cell
};

MatrixReport run_matrix(const std::vector<TrainCell>& cells, const MatrixOptions& options = {});

}  // namespace zeroproof::train
