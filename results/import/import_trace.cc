// SPDX-License-Identifier: Apache-2.0
#include "results/import/import_trace.h"

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "results/import/bytedance_timeline.h"
#include "results/import/chakra_trace.h"
#include "results/import/chrome_events.h"
#include "results/import/kernel_profile.h"
#include "results/import/nsight_export.h"
#include "results/import/primus_dump.h"
#include "results/import/range_trace.h"
#include "results/store.h"

namespace weir::results {
namespace {

// Reads files of one format, which the first of them decides.
class Importer {
 public:
  absl::Status Read(TraceSource* source) {
    if (label_.empty()) label_ = source->label();
    ++num_files_;
    if (IsChakra(source->Peek())) {
      RETURN_IF_ERROR(SetFormat(source->label(), "a trace of Chakra"));
      return ReadChakra(source);
    }
    if (IsSqlite(source->Peek())) {
      return absl::InvalidArgumentError(
          absl::StrCat(source->label(),
                       ": is a compressed SQLite database, expected it "
                       "decompressed, as by gunzip"));
    }
    if (IsPrimusDump(source->Peek())) {
      ++num_primus_files_;
      return primus_.Read(source);
    }
    const bool is_json =
        FirstCharacter(source) == '[' || FirstCharacter(source) == '{';
    if (!is_json) return ReadTable(source);
    const size_t timeline_before = timeline_.size();
    const int64_t ranges_before = ranges_.size();
    ranges_.BeginFile();
    ASSIGN_OR_RETURN(const ChromeTrace trace,
                     ReadChromeTrace(source, [&](const ChromeEvent& event) {
                       if (event.Argument("seq_id") == nullptr) {
                         TakeRange(event);
                       }
                       return timeline_.Take(source->label(), event);
                     }));
    if (timeline_.size() > timeline_before) {
      RETURN_IF_ERROR(SetFormat(source->label(), "a timeline of ByteDance"));
    } else if (ranges_.size() > ranges_before) {
      RETURN_IF_ERROR(
          SetFormat(source->label(), "Chrome JSON with ranges of passes"));
    }
    NoteCut(source->label(), trace);
    if (trace.num_unpaired > 0) {
      notes_.push_back(absl::StrCat(
          source->label(), ": ", trace.num_unpaired,
          " events that begin or end a range and have no counterpart are left "
          "out"));
    }
    num_events_ += trace.num_events;
    return ranges_.EndFile(source->label(), trace);
  }

  // Reads an export with `read`, which is ReadNsightExport or ReadNsightBytes.
  template <typename Read>
  absl::Status ReadNsight(const std::string& label, const Read& read) {
    if (label_.empty()) label_ = label;
    ++num_files_;
    RETURN_IF_ERROR(SetFormat(label, "an export of Nsight Systems"));
    ranges_.BeginFile();
    RETURN_IF_ERROR(read([&](const ChromeEvent& event) {
      ++num_events_;
      TakeRange(event);
    }));
    return ranges_.EndFile(label, {});
  }

  absl::StatusOr<RecordedRun> Finish() {
    ASSIGN_OR_RETURN(RecordedRun run, Collected());
    run.notes.insert(run.notes.begin(), notes_.begin(), notes_.end());
    RETURN_IF_ERROR(CleanRun(&run));
    return run;
  }

 private:
  // Returns InvalidArgument if an earlier file has another format: both would
  // be traces of the same ranks, which would be taken for more ranks.
  absl::Status SetFormat(const std::string& label, const std::string& format) {
    if (format_.empty()) {
      format_ = format;
      first_of_format_ = label;
    }
    if (format == format_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": is ", format, ", but ", first_of_format_, " is ",
                     format_, ", expected files of one format"));
  }

  absl::Status ReadChakra(TraceSource* source) {
    ranges_.BeginFile();
    ASSIGN_OR_RETURN(const ChromeTrace trace,
                     ReadChakraTrace(source, [&](const ChromeEvent& event) {
                       TakeRange(event);
                     }));
    NoteCut(source->label(), trace);
    num_events_ += trace.num_events;
    return ranges_.EndFile(source->label(), trace);
  }

  void NoteCut(const std::string& label, const ChromeTrace& trace) {
    if (!trace.cut_off) return;
    cut_off_ = true;
    notes_.push_back(absl::StrCat(label, ": ends within event ",
                                  trace.num_events + 1,
                                  "; the complete events were read"));
  }

  static char FirstCharacter(TraceSource* source) {
    using Traits = TraceSource::traits_type;
    while (true) {
      const auto next = source->sgetc();
      if (Traits::eq_int_type(next, Traits::eof())) return 0;
      const char c = Traits::to_char_type(next);
      // Also skips a byte order mark.
      const bool skipped = absl::ascii_isspace(static_cast<unsigned char>(c)) ||
                           c == '\xef' || c == '\xbb' || c == '\xbf';
      if (!skipped) return c;
      source->sbumpc();
    }
  }

  // Takes a range, or a kernel. Kernels are many, and are only needed if no
  // range names a pass.
  void TakeRange(const ChromeEvent& event) {
    ranges_.Take(event);
    if (ranges_.empty()) {
      profile_.Take(event);
    } else if (!drops_kernels_) {
      drops_kernels_ = true;
      profile_ = KernelProfile();
    }
  }

  absl::Status ReadTable(TraceSource* source) {
    if (num_files_ > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(source->label(),
                       ": is a table after other files, "
                       "expected one table with all workers"));
    }
    ASSIGN_OR_RETURN(table_, ReadByteDanceCsv(source));
    has_table_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<RecordedRun> Collected() {
    if (has_table_) {
      if (num_files_ == 1) return std::move(table_);
      return absl::InvalidArgumentError(
          absl::StrCat(label_,
                       ": is a table with other files beside it, "
                       "expected one table with all workers"));
    }
    if (num_primus_files_ > 0) {
      if (num_primus_files_ == num_files_) return primus_.Finish(label_);
      return absl::InvalidArgumentError(
          absl::StrCat(label_, ": ", num_primus_files_, " of ", num_files_,
                       " files belong to a dump of Primus, expected all or "
                       "none"));
    }
    if (!timeline_.empty()) return timeline_.Finish(label_, cut_off_);
    if (!ranges_.empty()) return ranges_.Finish(label_);
    if (!profile_.empty()) return profile_.Finish(label_);
    return absl::InvalidArgumentError(
        absl::StrCat(label_, ": none of ", num_events_,
                     " events names a pass, expected ranges such as "
                     "forward-compute, PP:2F0, "
                     "F3.0, Forward 3 or attn(F) (docs/traces.md)"));
  }

  std::string label_;
  // The format of the files, and the first file in this format.
  std::string format_, first_of_format_;
  int num_files_ = 0;
  int64_t num_events_ = 0;
  std::vector<std::string> notes_;
  ByteDanceTimeline timeline_;
  RangeTrace ranges_;
  KernelProfile profile_;
  PrimusDump primus_;
  int num_primus_files_ = 0;
  RecordedRun table_;
  bool has_table_ = false, drops_kernels_ = false;
  bool cut_off_ = false;  // a file
};

// Returns InvalidArgument if two paths name the same file, or one is a result.
absl::Status CheckPaths(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> seen;  // canonical: as given
  for (const std::string& path : paths) {
    if (IsResultFile(path)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       ": is a result of weir, expected a trace (weir show "
                       "prints results)"));
    }
    std::error_code error;
    const std::string canonical =
        std::filesystem::weakly_canonical(path, error);
    if (error) continue;  // opening it reports why
    const auto [first, is_new] = seen.emplace(canonical, path);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is the same file as ", first->second,
                     ", expected each file once"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordedRun> ImportTrace(const std::vector<std::string>& paths,
                                        const ReadProgress& progress) {
  RETURN_IF_ERROR(CheckPaths(paths));
  Importer importer;
  const auto count = static_cast<double>(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    ReadProgress of_file;
    if (progress) {
      of_file = [&, i](double done) {
        progress((static_cast<double>(i) + done) / count);
      };
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<TraceSource> source,
                     TraceSource::Open(paths[i], std::move(of_file)));
    if (IsSqlite(source->Peek()) && !source->is_compressed()) {
      RETURN_IF_ERROR(importer.ReadNsight(paths[i], [&](const auto& take) {
        return ReadNsightExport(paths[i], take);
      }));
    } else {
      RETURN_IF_ERROR(importer.Read(source.get()));
    }
  }
  return importer.Finish();
}

absl::StatusOr<RecordedRun> ImportTraceTexts(
    const std::vector<TraceText>& files) {
  Importer importer;
  for (const TraceText& file : files) {
    if (IsSqlite(file.bytes)) {
      RETURN_IF_ERROR(
          importer.ReadNsight(std::string(file.label), [&](const auto& take) {
            return ReadNsightBytes(file.label, file.bytes, take);
          }));
    } else {
      const auto source = TraceSource::FromText(file.label, file.bytes);
      RETURN_IF_ERROR(importer.Read(source.get()));
    }
  }
  return importer.Finish();
}

absl::StatusOr<RecordedRun> ImportTraceText(absl::string_view label,
                                            absl::string_view bytes) {
  return ImportTraceTexts({{label, bytes}});
}

}  // namespace weir::results
