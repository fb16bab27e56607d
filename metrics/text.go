package metrics

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// A Registry is what can be read of one source.
type Registry struct{ registry *prometheus.Registry }

// New returns the registry of a source. With live, the process and its runtime are
// part of it (process_…, go_…): for a running supervisor.
func New(from Source, live bool) *Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{from})
	if live {
		r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	}
	return &Registry{r}
}

// format is what every reader of Prometheus understands.
var format = expfmt.NewFormat(expfmt.TypeTextPlain)

// Write writes all metrics as text. Where something could not be read it writes
// nothing and returns why.
func (r *Registry) Write(to io.Writer) error {
	families, err := r.registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(to, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP answers a GET with the text.
func (r *Registry) ServeHTTP(w http.ResponseWriter, ask *http.Request) {
	if ask.Method != http.MethodGet && ask.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are read with GET", http.StatusMethodNotAllowed)
		return
	}
	families, err := r.registry.Gather()
	if err != nil {
		http.Error(w, "the metrics cannot be read now: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if encoder.Encode(f) != nil {
			return // the reader has gone
		}
	}
}
