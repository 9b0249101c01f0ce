#pragma once

#include <span>
#include <string_view>

namespace zeroproof::museum {

// One of the further faults (docs/FURTHER_FAULTS.md). Plain data, static.
struct UnseenFault {
  std::string_view id;  // of the departure, too
  std::string_view text;
};

// Those of the sixth twenty and later; group_unseen.cpp has the others.
std::span<const UnseenFault> unseen_faults_z();
std::span<const UnseenFault> unseen_faults_t();
std::span<const UnseenFault> unseen_faults_s();
std::span<const UnseenFault> unseen_faults_r();
std::span<const UnseenFault> unseen_faults_q();

}  // namespace zeroproof::museum
