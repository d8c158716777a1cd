// One line of the page: what the paper says, what we find, and whether that is the same.
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
};

class Published {
 public:
  // Throws BadParameters, naming the line: the text is ours, so a test reads all of them.
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
    within,     // of what is printed
    corrected,  // not of what is printed, or nothing is: of what it must be
    predicted,  // nothing is published: of what our model says
    outside,    // of all of them
    shown,      // not to be judged: parameters or data are not the paper's
  };
  std::string id, where, what;
  std::string paper, ours, difference;
  Verdict verdict = Verdict::shown;
  std::string why;
};
std::string_view name_of(Row::Verdict verdict);

class Rows {
 public:
  // `judged`: the run has the paper's parameters. `excuse`: why any row may be outside in
  // this run.
  Rows(const Published& published, bool judged, std::string excuse = "")
      : published_(&published), judged_(judged), excuse_(std::move(excuse)) {}

  // Ours beside what is published under this id.
  void value(std::string_view id, double ours);
  // The same with a reason of this run's own, for when it is outside.
  void value(std::string_view id, double ours, const std::string& why);
  // Whether a statement of the paper's holds here, with the numbers that show it. Its `printed` is
  // the statement.
  void claim(std::string_view id, bool holds, const std::string& numbers);
  // A statement that no run can show; its `why` says so.
  void remark(std::string_view id);
  // A measurement beside what our model says of these parameters; judged in every run. Without a
  // `why` it says how to tell chance from a wrong model.
  void predicted(std::string_view where, std::string_view what, double model, double ours,
                 Tolerance tolerance, const std::string& why = "");

  // A measurement that nothing is known of.
  void measured(std::string_view where, std::string_view what, double ours);

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
