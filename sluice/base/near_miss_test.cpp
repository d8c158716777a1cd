#include "sluice/base/near_miss.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

const std::vector<std::string> kNames = {"order_id", "user", "Amount", "id", "uses"};

TEST(NearMiss, FindsWhatWasMeant) {
  EXPECT_EQ(near_miss("oder_id", kNames), "order_id");    // one left out
  EXPECT_EQ(near_miss("orderr_id", kNames), "order_id");  // one added
  EXPECT_EQ(near_miss("order-id", kNames), "order_id");   // one changed
  EXPECT_EQ(near_miss("odrer_id", kNames), "order_id");   // two swapped
  EXPECT_EQ(near_miss("amount", kNames), "Amount");
  EXPECT_EQ(near_miss("ID", kNames), "id");
  EXPECT_EQ(near_miss("uesr", kNames), "user");
}

TEST(NearMiss, TheNearestWins) {
  EXPECT_EQ(near_miss("users", kNames), "user");
  EXPECT_EQ(near_miss("usees", kNames), "uses");
}

TEST(NearMiss, FarOnesAreNotNamed) {
  EXPECT_EQ(near_miss("price", kNames), std::nullopt);
  EXPECT_EQ(near_miss("ix", kNames), std::nullopt);  // half of its letters
  EXPECT_EQ(near_miss("", kNames), std::nullopt);
  EXPECT_EQ(near_miss("x", {}), std::nullopt);
  EXPECT_EQ(near_miss(std::string(1000, 'x'), kNames), std::nullopt);
}

}  // namespace
}  // namespace sluice
