#include "apps/redis/arguments.hpp"

#include <gtest/gtest.h>

#include "apps/redis/commands.hpp"

namespace sluice::server {
namespace {

using Type = Argument::Type;
using All = std::vector<Argument>;

TEST(Arguments, AreReadFromUsage) {
  EXPECT_EQ(arguments_of("key item [AT ms]"),
            (All{{.name = "key", .type = Type::key},
                 {.name = "item"},
                 {.name = "ms", .token = "AT", .type = Type::integer, .optional = true}}));
  EXPECT_EQ(arguments_of("destination source [source ...]"),
            (All{{.name = "destination", .type = Type::key},
                 {.name = "source", .type = Type::key, .multiple = true}}));
  EXPECT_EQ(
      arguments_of("ITEMS item [item ...] [NOCREATE]"),
      (All{{.name = "item", .token = "ITEMS", .multiple = true},
           {.name = "nocreate", .token = "NOCREATE", .type = Type::token, .optional = true}}));
  EXPECT_EQ(arguments_of("key effect [source ...]"),
            (All{{.name = "key", .type = Type::key},
                 {.name = "effect"},
                 {.name = "source", .type = Type::key, .optional = true, .multiple = true}}));
}

TEST(Arguments, MayBeChoicesAndBlocks) {
  EXPECT_EQ(arguments_of("[WINDOW count|duration|FOREVER]"),
            (All{{.name = "window",
                  .token = "WINDOW",
                  .type = Type::one_of,
                  .optional = true,
                  .parts = {{.name = "count"},
                            {.name = "duration"},
                            {.name = "forever", .token = "FOREVER", .type = Type::token}}}}));
  EXPECT_EQ(arguments_of("[EXPECT items | RATE items/s]"),
            (All{{.name = "expect-rate",
                  .type = Type::one_of,
                  .optional = true,
                  .parts = {{.name = "items", .token = "EXPECT"},
                            {.name = "items/s", .token = "RATE"}}}}));
  EXPECT_EQ(arguments_of("[FILTER name [parameter value ...]] [REFRESH]"),
            (All{{.name = "filter",
                  .type = Type::block,
                  .optional = true,
                  .parts = {{.name = "name", .token = "FILTER"},
                            {.name = "parameter",
                             .type = Type::block,
                             .optional = true,
                             .multiple = true,
                             .parts = {{.name = "parameter"}, {.name = "value"}}}}},
                 {.name = "refresh", .token = "REFRESH", .type = Type::token, .optional = true}}));
}

// The keys of a command are those that its numbers tell the server.
TEST(Arguments, OfAllCommandsNameTheirKeys) {
  for (const auto all : {commands(), bf_commands()})
    for (const Command& command : all) {
      SCOPED_TRACE(command.name);
      const All arguments = arguments_of(command.usage);
      const bool keyed = !arguments.empty() && arguments.front().type == Type::key;
      EXPECT_EQ(keyed, command.first_key == 1);
      for (const Argument& each : arguments) EXPECT_FALSE(each.name.empty());
    }
}

}  // namespace
}  // namespace sluice::server
