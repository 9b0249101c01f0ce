#pragma once

#include "model/order_count.h"
#include "sim/protocol/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// How many different orders of visible nodes a program has, computed from its partial orders and
// not by running it: the product over the graph tasks it runs, nested ones included, of their
// linear extensions (of the sequences up to the raising node for a task that raises). 1 in the
// faithful order model. Error where no formula applies: a graph task of more than 64 visible nodes,
// or one that recomputes when it or the recomputed task raises.
Result<OrderCount> count_program_orders(const ProtocolProgram& program, OrderModel order_model);

}  // namespace zeroproof
