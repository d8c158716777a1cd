// One line of the page: the paper's value, ours, and whether they agree.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::repro {

// "5%" of the value, or a difference.
struct Tolerance {
  double amount = 0;
  bool relative = true;
  bool allows(double expected, double found) const;
  // As a share of the value.
  double share_of(double expected) const;
};

// What a paper published under one name: a line of its published.csv (see experiment.hpp).
struct PublishedValue {
  enum class Kind { none, value, below, above, statement };
  std::string id, where, what;
  Kind kind = Kind::none;  // of `printed`
  double printed = 0;
  std::string printed_text;
  std::optional<double> corrected;
  Tolerance tolerance;
  std::string why;
  std::string basis;  // why its tolerance is above kUsualTolerance
};

// A wider tolerance needs a reason.
inline constexpr double kUsualTolerance = 0.1;

class Published {
 public:
  // Throws BadParameters, naming the line: a test reads all these files.
  static Published parse(std::string_view csv);
  // Throws BadParameters when there is none.
  const PublishedValue& operator[](std::string_view id) const;
  const std::vector<PublishedValue>& all() const { return values_; }

 private:
  std::vector<PublishedValue> values_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

struct Row {
  enum class Verdict {
    within,     // of the printed value
    corrected,  // of the corrected value, not of a printed one
    predicted,  // nothing is published: of our model's value
    outside,    // of all of them
    shown,      // not judged: parameters or data are not the paper's
  };
  std::string id, where, what;
  std::string paper, ours, difference;
  Verdict verdict = Verdict::shown;
  std::string why;
  std::string tolerance = "";         // with its reason, if it is wide
  std::optional<double> number = {};  // ours
  std::optional<double> deviation =
      {};  // of ours between runs with other seeds: its standard error
};
std::string_view name_of(Row::Verdict verdict);

class Rows {
 public:
  // `judged`: the run has the paper's parameters. `excuse`: a reason why any row of this run may be
  // outside.
  Rows(const Published& published, bool judged, std::string excuse = "")
      : published_(&published), judged_(judged), excuse_(std::move(excuse)) {}

  // Our value beside the published one with this id.
  void value(std::string_view id, double ours);
  // The same with a reason of this run, in case it is outside.
  void value(std::string_view id, double ours, const std::string& why);
  // Whether a statement of the paper's holds here, with the numbers that show it. Its `printed` is
  // the statement.
  void claim(std::string_view id, bool holds, const std::string& numbers);
  // A statement that no run can show; its `why` says so.
  void remark(std::string_view id);
  // A measurement beside our model's value for these parameters; judged in every run. Without a
  // `why`, the row says how to tell chance from a wrong model.
  void predicted(std::string_view where, std::string_view what, double model, double ours,
                 Tolerance tolerance, const std::string& why = "");

  // A measurement without a value to compare with.
  void measured(std::string_view where, std::string_view what, double ours);

  // Takes the standard errors from runs of the same experiment with other seeds.
  void compare_with(const std::vector<const Rows*>& others);

  // Whether the run has the paper's parameters and data.
  bool judged() const { return judged_; }
  const std::vector<Row>& all() const { return rows_; }

 private:
  void add(Row row);

  const Published* published_;
  bool judged_;
  std::string excuse_;
  std::vector<Row> rows_;
};

}  // namespace sluice::repro
