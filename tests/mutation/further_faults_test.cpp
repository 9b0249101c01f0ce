// The further faults stand beside the catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "props/mutation/catalogue.h"
#include "props/mutation/fault.h"

namespace zeroproof::mutation {
namespace {

TEST(FurtherFaults, Stand_beside_the_catalogue) {
  std::set<std::string_view> ids;
  for (const Fault& fault : further_faults()) {
    EXPECT_TRUE(fault.is_further()) << fault.id;
    EXPECT_EQ(find_row(fault.id), nullptr) << fault.id;
    EXPECT_EQ(find_fault(fault.id), &fault);
    EXPECT_FALSE(fault.sentence.empty()) << fault.id;
    EXPECT_TRUE(fault.is_woven) << fault.id;
    ids.insert(fault.id);
  }
  EXPECT_EQ(ids.size(), 532U);
  for (const Fault& fault : catalogue_faults()) EXPECT_FALSE(fault.is_further()) << fault.id;
}

}  // namespace
}  // namespace zeroproof::mutation
