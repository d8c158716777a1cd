// Costs, priors and posteriors of records, on the whole way through Dedup.
#include "sluice/stream/record_inference.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/stream/dedup.hpp"
#include "sluice/stream/json_tree.hpp"
#include "sluice/stream/prior_file.hpp"
#include "tests/support/text_ends.hpp"

namespace sluice {
namespace {

using testing_support::TextSink;
using testing_support::TextSource;

struct Outcome {
  std::string passed, held, error;
  DedupCounts counts;
  RecordInference::Counts infer;
  Inference::Stats inferred;
};

Outcome run(const DedupOptions& options, const std::string& text, std::size_t reads = 1 << 16,
            bool learn = false) {
  AnyFilter filter(
      Window::make({.spec = {WindowSpec::Kind::count, 64}, .filter = "cohort", .fpr = 0.01}));
  Judge judge(Hasher(HashKind::xxh3, Secret::from_seed(1)), std::move(filter),
              {.infer = JudgeOptions::Priors{.learn = learn}});
  TextSink passed, held;
  Outcome outcome;
  Dedup dedup(options, judge, passed, &held);
  try {
    TextSource source(text, reads);
    dedup.run(source, [] { return true; });
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  dedup.flush();
  outcome.passed = passed.text;
  outcome.held = held.text;
  outcome.counts = dedup.counts();
  if (dedup.inference() != nullptr) outcome.infer = dedup.inference()->counts();
  outcome.inferred = judge.inference()->stats();
  return outcome;
}

DedupOptions with(Format::Kind kind, std::vector<std::string> keys, const InferOptions& infer) {
  DedupOptions options;
  options.format.kind = kind;
  options.keys = std::move(keys);
  options.infer = infer;
  return options;
}

std::vector<std::string> lines_of(const std::string& text, char end) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = std::min(text.find(end, at), text.size());
    lines.push_back(text.substr(at, stop - at));
    at = stop + 1;
  }
  return lines;
}

rc::Gen<std::string> any_text() {
  return rc::gen::container<std::string>(
      rc::gen::element('a', 'b', 'a', ' ', ' ', '.', '1', '"', '\n', '\n', '\r', '\0', '{', '}'));
}

// For any input: without its last field each record is unchanged, and the verdicts are the
// filter's.
TEST(RecordInference, APosteriorIsALastFieldOfAnyLine) {
  for (const Format::Kind kind : {Format::Kind::lines, Format::Kind::nul}) {
    const char end = kind == Format::Kind::nul ? '\0' : '\n';
    const bool held = rc::check([&] {
      const std::string text = *any_text();
      DedupOptions options = with(kind, {"1"}, {.prior_field = "2", .posterior = true});
      const Outcome with_it = run(options, text, *rc::gen::inRange<std::size_t>(1, 50));
      options.infer.reset();
      const Outcome plain = run(options, text);
      for (const auto& [out, expected] :
           {std::pair(&with_it.passed, &plain.passed), std::pair(&with_it.held, &plain.held)}) {
        std::vector<std::string> lines = lines_of(*out, end);
        for (std::string& line : lines) {
          RC_ASSERT(line.rfind('\t') != std::string::npos);
          line.erase(line.rfind('\t'));
        }
        RC_ASSERT(lines == lines_of(*expected, end));
      }
    });
    EXPECT_TRUE(held);
  }
}

rc::Gen<std::string> any_json() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          R"({"k":1,"p":0.01})", R"( { "k" : 1 } )", "{}", "{ }", R"({"k":{}})", "[1]", "7", "",
          R"({"k":1,)", R"("}")", R"({"a":"}"})", "{\"k\":1}\r", "{\"k\":2,\"p\":\"1e-3\"}\t")),
      [](const std::vector<std::string>& lines) {
        std::string text;
        for (const std::string& line : lines) text += line + "\n";
        return text;
      });
}

RC_GTEST_PROP(RecordInferenceOfJson, WhatWasJsonStaysJson, ()) {
  const std::string text = *any_json();
  DedupOptions options = with(Format::Kind::json, {"/k"}, {.prior_field = "/p", .posterior = true});
  const Outcome with_it = run(options, text, *rc::gen::inRange<std::size_t>(1, 50));
  options.infer.reset();
  const Outcome plain = run(options, text);
  JsonTree tree;
  for (const auto& [out, expected] :
       {std::pair(&with_it.passed, &plain.passed), std::pair(&with_it.held, &plain.held)}) {
    const std::vector<std::string> lines = lines_of(*out, '\n'), were = lines_of(*expected, '\n');
    RC_ASSERT(lines.size() == were.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool was_json = tree.parse(were[i]);
      const bool was_object = was_json && tree.root().kind() == JsonKind::object;
      RC_ASSERT(tree.parse(lines[i]) == was_json);
      RC_ASSERT(was_object == (lines[i] != were[i]));
      if (was_object) RC_ASSERT(tree.root().member("sluice_posterior").has_value());
    }
  }
}

TEST(RecordInference, CostsAndPriorsStayWithTheirRecords) {
  // The second is without a key and the third late in the batch: what follows keeps its own.
  const InferOptions infer{.cost_lost_field = "2", .prior_field = "3", .posterior = true};
  const Outcome outcome = run(with(Format::Kind::lines, {"1"}, infer),
                              "a 0 .001\n\nb 5 .002\na 0 .001\nb 1e12 .002\nb 0\nb -1 .5\n");
  EXPECT_EQ(outcome.passed, "a 0 .001\t0\n\t-\nb 5 .002\t0\nb 1e12 .002\t0.999524\n");
  EXPECT_EQ(outcome.counts.unkeyed, 1u);
  EXPECT_EQ(outcome.infer.without_cost, 1u);
  EXPECT_EQ(outcome.infer.without_prior, 1u);
  EXPECT_EQ(outcome.inferred.passed, 1u);
  EXPECT_EQ(outcome.inferred.inferred, 3u);
}

TEST(RecordInference, StrictEndsAtARecordThatLacksOne) {
  DedupOptions options = with(Format::Kind::json, {"/k"}, {.cost_lost_field = "/c"});
  options.strict = true;
  const Outcome outcome =
      run(options, "{\"k\":1,\"c\":2}\n{\"k\":2,\"c\":null}\n{\"k\":3,\"c\":1}\n");
  EXPECT_EQ(outcome.passed, "{\"k\":1,\"c\":2}\n");
  EXPECT_EQ(
      outcome.error,
      "input: record 2: a cost or a prior cannot be read in '{\"k\":2,\"c\":null}': mend it, or "
      "run without `strict` to pass it through");
  // The first of all, with nothing in front of it to write.
  DedupOptions lines = with(Format::Kind::lines, {"1"}, {.prior_field = "2", .posterior = true});
  lines.strict = true;
  const Outcome none = run(lines, "bad\nx .1\n");
  EXPECT_EQ(none.passed, "");
  EXPECT_NE(none.error.find("record 1: a cost or a prior cannot be read in 'bad'"),
            std::string::npos)
      << none.error;
}

TEST(RecordInference, AFieldIsOne) {
  const auto refused = [](Format::Kind kind, const std::string& field) {
    EXPECT_THROW(run(with(kind, {}, {.cost_lost_field = field}), ""), BadParameters) << field;
  };
  refused(Format::Kind::lines, "1,2");
  refused(Format::Kind::lines, "0");
  refused(Format::Kind::json, "/a,/b");
  refused(Format::Kind::json, "a");
}

std::string refusal_of(const std::string& text, Format::Kind kind,
                       const std::vector<std::string>& keys) {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  for (const std::size_t reads : {1u, 7u, 1u << 16}) {
    TextSource source(text, reads);
    try {
      read_priors(source, Format{.kind = kind}, keys, {}, hasher);
    } catch (const BadParameters& error) {
      if (reads == 1u << 16) return error.what();
      continue;
    }
    return "";
  }
  return "";
}

TEST(PriorFile, IsStrict) {
  const auto lines = Format::Kind::lines, json = Format::Kind::json;
  EXPECT_EQ(refusal_of("", lines, {}), "");
  EXPECT_EQ(refusal_of("a\t.5\r\nb\t1e-300", lines, {"1"}), "");
  EXPECT_TRUE(refusal_of("a\t.5\n\n", lines, {"1"}).starts_with("input:2: there is no tab"));
  EXPECT_TRUE(refusal_of("a\tnan\n", lines, {"1"}).starts_with("input:1: 'nan' is no probability"));
  EXPECT_TRUE(refusal_of("a\t1\n", lines, {"1"}).starts_with("input:1: '1' is no probability"));
  EXPECT_TRUE(refusal_of("a\t.1\na\t.1\n", lines, {}).starts_with("input:2: this key"));
  EXPECT_TRUE(refusal_of("1\t.1\n1.0\t.1\n", json, {"/a"}).starts_with("input:2: this key"));
  EXPECT_TRUE(refusal_of("1,2\t.1\n", json, {"/a"}).starts_with("input:1: the key"));
  EXPECT_TRUE(refusal_of("{\"a\"\t.1\n", json, {}).starts_with("input:1: the key is not JSON"));
  EXPECT_TRUE(refusal_of("a\tb\t.1\n", lines, {"1"}).starts_with("input:1: the key has 2 fields"));
  EXPECT_TRUE(refusal_of("a\t.1\n", lines, {"1,2"}).starts_with("input:1: the key has 1 fields"));
  EXPECT_EQ(refusal_of("a\tb\t.1\n", lines, {}), "") << "the whole record may hold tabs";
}

TEST(PriorFile, KnowsKeysAsThePipelineTakesThem) {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  const auto knows = [&](const Format& format, const std::vector<std::string>& keys,
                         const std::string& table, std::string record) {
    TextSource source(table, 1 << 16);
    const PriorTable priors = read_priors(source, format, keys, {}, hasher);
    const std::size_t length = record.size();
    record.append(kPaddingBytes, ' ');
    const Record one{record.data(), length, length};
    std::string_view key;
    KeyStatus status{};
    const auto extractor = make_key_extractor(format, keys);  // holds what the key is made of
    extractor->extract({&one, 1}, {&key, 1}, {&status, 1});
    Digest digest;
    hasher.digest(std::span(&key, 1), std::span(&digest, 1));
    return status == KeyStatus::keyed && priors.of(digest).known();
  };
  const Format csv{.kind = Format::Kind::csv, .header = false};
  EXPECT_TRUE(knows({}, {}, "a b\t.1", "a b"));
  EXPECT_TRUE(knows({}, {"2"}, "b\t.1", "a b"));
  EXPECT_TRUE(knows({}, {"2,1"}, "b\ta\t.1", "a b"));
  EXPECT_FALSE(knows({}, {"2,1"}, "a\tb\t.1", "a b"));
  EXPECT_TRUE(knows({}, {"2", "1"}, "b\ta\t.1", "a b"));
  EXPECT_TRUE(knows(csv, {"1"}, "a\"b\t.1", "\"a\"\"b\",x"));
  EXPECT_TRUE(knows(csv, {}, "a,b\t.1", "\"a\",b"));
  EXPECT_TRUE(knows(csv, {"2,1"}, "x\ta\t.1", "a,\"x\""));
  EXPECT_TRUE(knows({.kind = Format::Kind::tsv, .header = false}, {}, "a\tb\t.1", "a\tb"));
  const Format json{.kind = Format::Kind::json};
  EXPECT_TRUE(knows(json, {"/a"}, "\"x\"\t.1", R"({"a":"x"})"));
  EXPECT_TRUE(knows(json, {"/a"}, "1.50\t.1", R"({"a":1.5})"));
  EXPECT_TRUE(knows(json, {"/a,/b"}, "[1]\t\"y\"\t.1", R"({"b":"y","a":[1]})"));
  EXPECT_TRUE(knows(json, {}, "{\"a\":1}\t.1", R"({ "a": 1 })"));
  EXPECT_FALSE(knows(json, {"/a"}, "\"1\"\t.1", R"({"a":1})"));
}

}  // namespace
}  // namespace sluice
