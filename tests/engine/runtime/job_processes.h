#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/engine/runtime/process_stores.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof {

// Processes of a job that are threads of the test, each with its own store and Job.
inline std::vector<std::exception_ptr> run_job(
    StoreMaker& maker, int size, const std::function<void(std::shared_ptr<Job>)>& body,
    int timeout_ms = 120'000) {
  std::vector<std::unique_ptr<Store>> stores;
  for (int rank = 0; rank < size; ++rank) stores.push_back(maker.open(rank, size));
  std::vector<std::exception_ptr> errors(stores.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      try {
        body(std::make_shared<Job>(Launch{.launcher = "the test", .rank = rank, .size = size},
                                   std::move(stores[at]), std::chrono::milliseconds(timeout_ms)));
      } catch (...) {
        errors[at] = std::current_exception();
      }
    });
  threads.clear();  // joins
  return errors;
}

inline std::string what_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
  return {};
}

}  // namespace zeroproof
