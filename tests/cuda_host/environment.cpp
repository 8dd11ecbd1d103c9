// SPDX-License-Identifier: Apache-2.0
// Each test begins with a new device, and fails where it leaves something behind: a violation that
// it has not taken, or an object that is still alive.
#include <gtest/gtest.h>

#include "cuda_host.h"

namespace {

class NothingLeft : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override { cuda_host::reset(); }

  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    EXPECT_EQ(cuda_host::live().text(), "") << "is left over";
    for (const std::string& sentence : cuda_host::take_violations()) {
      ADD_FAILURE() << sentence;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Owned by the framework from here on.
  testing::UnitTest::GetInstance()->listeners().Append(std::make_unique<NothingLeft>().release());
  return RUN_ALL_TESTS();
}
