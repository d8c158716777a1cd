#include "sluice/filters/settings.hpp"

#include <gtest/gtest.h>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr ParameterInfo kKnown[] = {
    {"bytes", "", "", ""}, {"probes", "", "", ""}, {"fpr", "", "", ""}, {"layout", "", "", ""}};
constexpr std::string_view kLayouts[] = {"blocked", "classic"};

SettingsReader read(std::string_view text) {
  return {"bloom", Settings::parse(text), kKnown};
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "no error";
}

TEST(Settings, ParseAndTextAreInverse) {
  const Settings settings = Settings::parse("layout=classic,probes=12");
  ASSERT_EQ(settings.pairs().size(), 2u);
  EXPECT_EQ(settings.pairs()[1].first, "probes");
  EXPECT_EQ(settings.pairs()[1].second, "12");
  EXPECT_EQ(settings.text(), "layout=classic,probes=12");
  EXPECT_EQ(Settings::parse(settings.text()), settings);
  EXPECT_EQ(Settings::parse(""), Settings());
}

TEST(Settings, NumbersSurviveText) {
  Settings settings;
  settings.add("bytes", ~std::uint64_t{0});
  settings.add("fpr", 1e-6);
  EXPECT_EQ(settings.text(), "bytes=18446744073709551615,fpr=1e-06");
  const double third = 1.0 / 3;
  Settings exact;
  exact.add("fpr", third);
  EXPECT_EQ(SettingsReader("bloom", exact, kKnown).probability("fpr"), third);
}

TEST(Settings, WhatIsNoPairIsNamed) {
  for (const char* text : {"classic", "=classic", "layout=", "probes=8,classic"})
    EXPECT_NE(error_of([&] { Settings::parse(text); }).find("are written name=value"),
              std::string::npos)
        << text;
}

TEST(Settings, GivenTwice) {
  EXPECT_EQ(error_of([] { Settings::parse("probes=8,probes=9"); }),
            "filter parameter 'probes' is given twice: give it once");
}

TEST(SettingsReader, UnknownParameter) {
  EXPECT_EQ(error_of([] { read("prober=8"); }),
            "filter 'bloom' has no parameter 'prober': it has bytes, probes, fpr, layout");
  EXPECT_EQ(error_of([] { SettingsReader("none", Settings::parse("a=1"), {}); }),
            "filter 'none' has no parameter 'a': it has none");
}

TEST(SettingsReader, OutOfRange) {
  EXPECT_EQ(error_of([] { read("probes=65").count("probes", 1, 64); }),
            "parameter 'probes' of filter 'bloom' is '65': it takes 1 to 64");
  EXPECT_EQ(error_of([] { read("bytes=2").size("bytes", 64, 1 << 20); }),
            "parameter 'bytes' of filter 'bloom' is '2': it takes 64 to 1MiB");
  EXPECT_EQ(error_of([] { read("layout=round").choice("layout", kLayouts); }),
            "parameter 'layout' of filter 'bloom' is 'round': it takes blocked or classic");
}

TEST(SettingsReader, NoNumber) {
  const std::string probes = error_of([] { read("probes=many").count("probes", 1, 64); });
  EXPECT_EQ(probes.find("probes of filter 'bloom' 'many' is not a count"), 0u) << probes;
  const std::string fpr = error_of([] { read("fpr=2").probability("fpr"); });
  EXPECT_EQ(fpr.find("fpr of filter 'bloom' '2' is out of range"), 0u) << fpr;
}

TEST(SettingsReader, WhatWasGivenAndWhatWasNot) {
  const SettingsReader reader = read("probes=12,bytes=64KiB,layout=classic,fpr=1%");
  EXPECT_EQ(reader.count("probes", 12, 12), 12u);
  EXPECT_EQ(reader.size("bytes", 1, 1 << 20), 65536u);
  EXPECT_EQ(reader.choice("layout", kLayouts), "classic");
  EXPECT_EQ(reader.probability("fpr"), 0.01);
  EXPECT_EQ(read("").count("probes", 1, 64), std::nullopt);
  EXPECT_EQ(read("").choice("layout", kLayouts), std::nullopt);
}

}  // namespace
}  // namespace sluice
