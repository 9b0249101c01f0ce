#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/program/program.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::program {

// One use of a weight: the forward adds the sum of factor times weight to the activations, so the
// factor is the weight's gradient.
struct Use {
  std::string weight;   // the module that owns it, and which of its weights: "l0", "l0/1"
  int number = 0;       // of the uses of that weight
  Shape sizes;          // of the factor
  int summed_rows = 1;  // a bias gets the sum of so many rows of the factor
};

// The uses of a model's weights: inputs 1, 2, … of its forward are their factors, in this order.
class UseTable {
 public:
  explicit UseTable(const Model& model);

  const std::vector<Use>& uses() const { return uses_; }
  // The places of a node's uses.
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  Range of(const std::string& node) const { return ranges_.at(node); }
  int uses_of(const std::string& weight) const { return counts_.at(weight); }

 private:
  void add_node(const Model& model, const Module& node);
  void add(const std::string& weight, Shape sizes, int summed_rows = 1);
  void add_leaf(const Module& leaf);

  std::vector<Use> uses_;
  std::map<std::string, Range> ranges_;
  std::map<std::string, int> counts_;
};

// The sizes of a node's weight as it is declared: [outputs, inputs] of a Linear.
Shape weight_sizes(const Module& node);

// What means over ranks and micro-batches are divided by, without its powers of two.
std::int64_t odd_divisor(const Program& program);

// How the data of a run differ from those of the run that it is compared with (props/relations).
struct DataChange {
  // Whose data and statements a rank has, of so many; null: its own.
  int (*role)(int rank, int ranks) = nullptr;
  // Forwards, by what they are called, and tags of checkpoints. Such a forward contributes zeros
  // and takes no place in its window; what these statements show is not observed.
  std::set<std::string> silent = {};
  int exponent = 0;  // every contribution times two to it

  int role_of(int rank, int ranks) const { return role ? role(rank, ranks) : rank; }
};

// What the forwards of a program contribute to gradients: to every element of a weight, of every
// forward, rank and use, a number of its own, such that no sum of a window needs more bits than the
// dtypes on the way have. In exact data the numbers are powers of two, some of which are left out
// where bits are few; in identity data they are small whole numbers, which all fit. Immutable.
class DataPlan {
 public:
  explicit DataPlan(const Program& program);
  // The contributions of `other` to the weights of this program, but for the change.
  DataPlan(const Program& program, const DataPlan& other, DataChange change);

  // {activations, factor of each use}: of the forward that is number `slot` of its window.
  TensorList inputs(const std::string& engine, std::int64_t slot, int rank) const;
  // {activations, factors} of one module that is called past the engine.
  TensorList module_inputs(const std::string& engine, const std::string& module, std::int64_t slot,
                           int rank) const;
  // The same with zeros alone.
  TensorList silent_inputs(const std::string& engine) const;
  const UseTable& table(const std::string& engine) const { return tables_.at(engine); }
  const DataChange& change() const { return change_; }
  bool is_real() const { return mode_ == Data::Mode::real; }

 private:
  // One contribution to one element.
  struct Place {
    std::uint64_t hash = 0;  // of the weight
    std::int64_t element = 0;
    std::int64_t contribution = 0;  // its number among so many
    std::int64_t contributions = 1;
    int bits = 1;  // of their sum
  };
  Tensor factor(const Use& use, int uses, std::int64_t slot, int rank) const;
  double number(const Place& place, std::int64_t slot, int rank) const;
  double exact(const Place& place) const;
  double identity(const Place& place) const;
  double magnitude(std::int64_t slot, int rank) const;
  double real(const Place& place) const;
  // The same for all contributions to an element, so that they never cancel.
  static double sign_of(const Place& place);
  std::int64_t turn_of(const Place& place, std::int64_t room) const;

  Data::Mode mode_;
  int magnitude_;
  int stage_;
  std::uint32_t seed_;
  DType dtype_;      // of the model
  DType narrowest_;  // on the way to the optimizer
  int ranks_;
  std::int64_t slots_ = 1;      // forwards of a window, at most
  std::int64_t additions_ = 1;  // of one contribution by backwards, at most
  int bits_ = 8;                // of a sum
  int exponent_ = 0;            // of the smallest contribution
  double multiple_ = 1.0;       // of all, so that means over ranks and micro-batches are exact
  bool calls_modules_ = false;
  DataChange change_;
  std::map<std::string, UseTable> tables_;  // by engine
};

}  // namespace zeroproof::program
