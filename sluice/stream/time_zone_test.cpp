#include "sluice/stream/time_zone.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "sluice/base/error.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr const char* kZones = "/usr/share/zoneinfo/";

std::string bytes_of(const std::string& name) {
  std::ifstream file(kZones + name, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// The clocks of a place, by the C library.
class Place {
 public:
  explicit Place(const char* name) {
    setenv("TZ", name, 1);
    tzset();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    unsetenv("TZ");
    tzset();
  }
  std::int64_t shows(std::int64_t moment) const {
    const std::time_t time = moment;
    std::tm local{};
    localtime_r(&time, &local);
    return timegm(&local);
  }
};

// Half-hour changes, whole days that were skipped, summer in winter, rules with hours below 0 and
// above 24, and none at all.
TEST(TimeZone, AgreesWithTheCLibrary) {
  std::mt19937_64 random(1);
  const int rounds = testing_support::count_of(300, 2000, 100'000);
  for (const char* name :
       {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Dublin",
        "America/Nuuk", "Asia/Gaza", "Africa/Casablanca", "Asia/Kolkata", "America/Santiago",
        "Etc/GMT+5", "UTC"}) {
    if (!std::filesystem::exists(kZones + std::string(name))) GTEST_SKIP() << "no tz database";
    const auto zone = TimeZone::of_file(bytes_of(name));
    const Place place(name);
    int unclear = 0;
    std::int64_t change = 0;
    const auto check = [&](std::int64_t moment) {
      const std::int64_t local = place.shows(moment);
      const auto found = zone->to_utc(local * kSecond);
      if (found) {
        EXPECT_EQ(*found, moment * kSecond) << name << " " << moment;
        return;
      }
      // It must be shown twice: also by an offset that holds up to a day before or after. (Santiago's
      // clocks were once set back by 42 minutes and 45 seconds.)
      ++unclear;
      bool twice = false;
      for (std::int64_t step = 900; step <= 90'000 && !twice; step += 900)
        for (const std::int64_t near : {moment - step, moment + step}) {
          const std::int64_t other = local - (place.shows(near) - near);
          twice = twice || (other != moment && place.shows(other) == local);
        }
      EXPECT_TRUE(twice) << name << " " << moment;
    };
    for (int round = 0; round < rounds; ++round) {
      // The years 1902 to 2109. Within a few hours of a change, if one was met before.
      std::int64_t moment = static_cast<std::int64_t>(random() % 6'550'000'000) - 2'145'000'000;
      if (change != 0 && round % 2 == 0)
        moment = change + static_cast<std::int64_t>(random() % 20'000) - 10'000;
      check(moment);
      const std::int64_t month = 30 * 86'400, before = place.shows(moment) - moment;
      if (place.shows(moment + month) - (moment + month) == before) continue;
      std::int64_t low = moment, high = moment + month;
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (place.shows(middle) - middle == before ? low : high) = middle;
      }
      change = high;
      // What clocks skip is never shown.
      const std::int64_t skipped = place.shows(high) - place.shows(low) - 1;
      if (skipped > 0) {
        EXPECT_EQ(zone->to_utc((place.shows(high) - 1) * kSecond), std::nullopt) << name << high;
      }
    }
    if (std::string_view(name) == "Europe/Berlin") {
      EXPECT_GT(unclear, 0);
    }
  }
}

TEST(TimeZone, FilesThatAreNoneAreRefused) {
  const std::string berlin = bytes_of("Europe/Berlin");
  if (berlin.empty()) GTEST_SKIP() << "no tz database";
  for (const char* bytes :
       {"", "TZif", "hello, this is not a zone at all, but forty-four bytes long"})
    EXPECT_THROW(TimeZone::of_file(bytes), BadParameters);
  for (std::size_t size = 0; size < berlin.size(); ++size)
    EXPECT_THROW(TimeZone::of_file(berlin.substr(0, size)), BadParameters) << size;
  // Any changed byte is refused, or gives other offsets: nothing is read outside.
  std::mt19937_64 random(1);
  for (int round = 0; round < testing_support::count_of(2000, 20'000, 1'000'000); ++round) {
    std::string changed = berlin;
    for (int i = 0; i < 2; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    try {
      TimeZone::of_file(changed)->to_utc(1'700'000'000 * kSecond);
    } catch (const BadParameters&) {
    }
  }
}

}  // namespace
}  // namespace sluice
