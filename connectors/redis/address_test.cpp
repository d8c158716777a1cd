#include "connectors/redis/address.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sluice/base/error.hpp"

namespace sluice::redis {
namespace {

TEST(RedisAddress, IsReadAsWritten) {
  const Address one = parse_address("redis://cache-1.example:6379/clicks");
  EXPECT_FALSE(one.cluster);
  EXPECT_EQ(one.user, "");
  EXPECT_EQ(one.endpoints, (std::vector<Endpoint>{{"cache-1.example", 6379}}));
  EXPECT_EQ(one.name, "clicks");
  const Address many = parse_address("redis+cluster://app@10.0.0.1:7000,[fd00::2]:7001/eu:clicks");
  EXPECT_TRUE(many.cluster);
  EXPECT_EQ(many.user, "app");
  EXPECT_EQ(many.endpoints, (std::vector<Endpoint>{{"10.0.0.1", 7000}, {"fd00::2", 7001}}));
  EXPECT_EQ(many.name, "eu:clicks");
}

TEST(RedisAddress, WhatIsNoneIsRefused) {
  for (const char* url : {
           "",
           "clicks",
           "http://a:1/n",
           "redis://",
           "redis://a:1",
           "redis://a:1/",
           "redis:///n",
           "redis://a/n",
           "redis://a:/n",
           "redis://a:0/n",
           "redis://a:65536/n",
           "redis://a:-1/n",
           "redis://a:1x/n",
           "redis://a:1,/n",
           "redis://,a:1/n",
           "redis://a b:1/n",
           "redis://a:1/n}m",
           "redis://a:1/n/m",
           "redis://@a:1/n",
           "redis://fd00::2:1/n",
           "redis://[fd00::2]/n",
           "redis://a:1/\n",
           "redis://a:b:1/n",
       })
    EXPECT_THROW(parse_address(url), BadParameters) << url;
  EXPECT_THROW(parse_address("redis://a:1/" + std::string(201, 'n')), BadParameters);
  std::string many = "redis://a:1";
  for (int i = 0; i < 1000; ++i) many += ",a:1";
  EXPECT_THROW(parse_address(many + "/n"), BadParameters);
}

TEST(RedisAddress, APasswordIsRefusedAndNotRepeated) {
  try {
    parse_address("redis://app:hunter2@a:1/n");
    FAIL();
  } catch (const BadParameters& error) {
    EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos);
  }
}

TEST(RedisAddress, EndpointsOfServersAreChecked) {
  EXPECT_EQ(parse_endpoint("127.0.0.1:7000"), (Endpoint{"127.0.0.1", 7000}));
  // As servers write IPv6.
  EXPECT_EQ(parse_endpoint("fd00::2:7000"), (Endpoint{"fd00::2", 7000}));
  for (const char* text : {"", ":", "a", "a:", ":1", "a:0", "a:70000", "a:+1", "a\n:1", "a:1 "})
    EXPECT_EQ(parse_endpoint(text), std::nullopt) << text;
  EXPECT_EQ(parse_endpoint(std::string(254, 'a') + ":1"), std::nullopt);
}

TEST(RedisAddress, PasswordsComeFromAFileOrTheEnvironment) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / ("sluice-password-" + std::to_string(::getpid()));
  const auto read = [&](const std::string& content) {
    std::ofstream(path) << content;
    return password_from_file(path);
  };
  EXPECT_EQ(read("secret\n"), "secret");
  EXPECT_EQ(read("a b\r\nc\n"), "a b");
  EXPECT_EQ(read(std::string(4096, 'x')).size(), 4096u);
  EXPECT_THROW(read(""), BadParameters);
  EXPECT_THROW(read("\nsecret"), BadParameters);
  EXPECT_THROW(read(std::string(4097, 'x')), BadParameters);
  std::filesystem::remove(path);
  EXPECT_THROW(password_from_file(path), IoError);
  ::setenv("SLUICE_TEST_PASSWORD", "secret", 1);
  EXPECT_EQ(password_from_environment("SLUICE_TEST_PASSWORD"), "secret");
  ::unsetenv("SLUICE_TEST_PASSWORD");
  EXPECT_THROW(password_from_environment("SLUICE_TEST_PASSWORD"), BadParameters);
}

}  // namespace
}  // namespace sluice::redis
