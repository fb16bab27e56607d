package server

import (
	"io"
	"strings"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Metrics writes all metrics as text, or writes nothing and says why.
type Metrics interface {
	Write(to io.Writer) error
}

// WithMetrics has c answer metrics. It returns c.
func (c *Control) WithMetrics(m Metrics) *Control {
	c.metrics = m
	return c
}

func (c *Control) writeMetrics(in asking, _ protocol.Empty) (any, error) {
	if c.metrics == nil {
		return nil, refusal.New(refusal.Unavailable, "there are no metrics here", "nobody collects them", "")
	}
	if err := in.bulky(); err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := c.metrics.Write(&text); err != nil {
		return nil, err
	}
	return protocol.Metrics{Text: text.String()}, nil
}
