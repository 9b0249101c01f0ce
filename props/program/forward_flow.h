#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/program/model_tree.h"

namespace zeroproof::program {

// What a forward is asked to do.
struct FlowOptions {
  std::set<std::string> skipped = {};  // modules
  std::set<std::string> frozen = {};   // modules that the user has frozen since
  bool inputs_need_grad = false;
  int expert = 0;
};

// Where gradients of one loss, or of what all losses have in common, come to.
struct Reach {
  // Weights as "l0", "l0/1" (a second one), "l0/bias", "x/e1" (an expert).
  std::set<std::string> weights = {};
  bool has_graph = false;
};

// What the graph of a forward contains.
struct ForwardFlow {
  std::vector<Reach> losses;             // one for each head; with what the body has
  std::map<std::string, int> ran = {};   // modules, and the head that they are of; -1: the body
  std::set<std::string> passes = {};     // those of which what they return needs a gradient
  std::set<std::string> unwrapped = {};  // those that no checkpoint is around
  bool has_unfed_experts = false;        // no gradient comes to what experts get
  std::set<std::string> tiled = {};      // weights that have their gradient before forward ends
};

ForwardFlow flow_of(const Model& model, const FlowOptions& options);

// Every weight of the model that the optimizer trains and that has elements, as Reach names them.
std::set<std::string> trained_weights(const Model& model);
// The modules that own weights which others can name: Linear and Custom, in order.
std::vector<const Module*> weight_owners(const Model& model);
std::int64_t elements_of(const Module& owner);  // of the weight that others name
Trained trained_of(const Module& owner);

// Those of a Linear or Custom module that get gradients: "l0", "l0/bias", "l0/1".
std::set<std::string> weights_with_gradient(const Module& owner);
bool has_trained_weight(const Module& owner);  // the one that others name

}  // namespace zeroproof::program
