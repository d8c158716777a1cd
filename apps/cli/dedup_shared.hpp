// `sluice dedup` with a filter on servers: which flags go with it, and what it reports.
#pragma once

#include <memory>
#include <string>

#include "dedup_report.hpp"
#include "dedup_request.hpp"
#include "shared.hpp"

namespace sluice::cli {

class JsonWriter;

// --filter redis://…: opens the filter, and changes `flags` to what they are without it: its window,
// and no filter of this process. Null for any other filter. Throws BadParameters for flags that
// cannot be used with it, and RunFailed.
std::shared_ptr<SharedFilter> open_filter(DedupFlags& flags);

// "filter 'clicks': the last 10 minutes, by event time /t; …": how the flags were read.
std::string reading_of_shared(const DedupRequest& request);

// What the report says of it.
std::string shared_rows(const DedupReport& report);
void add_shared(JsonWriter& json, const DedupReport& report);

}  // namespace sluice::cli
